<?php

namespace App\Providers;

use Illuminate\Foundation\Support\Providers\RouteServiceProvider as ServiceProvider;
use Illuminate\Support\Facades\Route;

class RouteServiceProvider extends ServiceProvider
{
    public function boot()
    {
        $this->routes(function () {
            Route::group([], base_path('routes/webhooks.php'));
            Route::middleware('web')->group(base_path('routes/web.php'));
        });
    }
}
