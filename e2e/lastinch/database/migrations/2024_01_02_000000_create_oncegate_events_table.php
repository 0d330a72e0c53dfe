<?php

use Illuminate\Database\Migrations\Migration;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Support\Facades\DB;
use Illuminate\Support\Facades\Schema;

class CreateOncegateEventsTable extends Migration
{
    public function up()
    {
        Schema::create('oncegate_events', function (Blueprint $table) {
            // Oncegate-Event is visible ASCII, at most 385 characters, and compared
            // byte by byte. MySQL would take evt_a for evt_A without the collation.
            $event = $table->string('event', 400);
            if (DB::getDriverName() === 'mysql') {
                $event->charset('ascii')->collation('ascii_bin');
            }
            $table->primary('event');
            $table->integer('attempt')->nullable();
            $table->timestamp('committed_at')->useCurrent();
        });
    }
}
