<?php

use App\Http\Controllers\OnceWebhookController;
use Illuminate\Support\Facades\Route;

Route::post('hooks/paid', [OnceWebhookController::class, 'paid']);
Route::post('hooks/queued', [OnceWebhookController::class, 'queued']);
