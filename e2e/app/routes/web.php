<?php

use App\Http\Controllers\EchoController;
use App\Http\Middleware\VerifyCsrfToken;
use Illuminate\Support\Facades\Route;

Route::get('/', fn () => 'shop');
Route::any('echo/{way?}', EchoController::class)->name('echo')->withoutMiddleware(VerifyCsrfToken::class);
Route::get('link', [EchoController::class, 'link']);
Route::get('ticket/{ticket}', [EchoController::class, 'ticket'])->name('ticket')->middleware('signed');
