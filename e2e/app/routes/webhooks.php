<?php

use App\Http\Controllers\StripeWebhookController;
use Illuminate\Support\Facades\Route;

// Outside the web group, as Laravel Cashier registers its own.
Route::post('stripe/webhook', StripeWebhookController::class)->name('stripe.webhook');
