<?php

use Illuminate\Database\Migrations\Migration;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Support\Facades\Schema;

// No unique index anywhere: nothing in this app stops a duplicate.
class CreateShopTables extends Migration
{
    public function up()
    {
        Schema::create('payments', function (Blueprint $table) {
            $table->id();
            $table->string('event');
            $table->unsignedBigInteger('amount');
            $table->timestamps();
        });
        Schema::create('enrolments', function (Blueprint $table) {
            $table->id();
            $table->string('event');
            $table->string('student');
            $table->timestamps();
        });
        Schema::create('ledger_entries', function (Blueprint $table) {
            $table->id();
            $table->string('event');
            $table->string('oncegate_event')->nullable();
            $table->string('oncegate_attempt')->nullable();
            $table->string('receipt');
            $table->boolean('finished')->default(false);
            $table->timestamps();
        });
    }
}
