<?php

namespace App\Models;

use Illuminate\Database\Eloquent\Model;

/** One run of the webhook's handler, as the tests count them. */
class LedgerEntry extends Model
{
    protected $guarded = [];
}
