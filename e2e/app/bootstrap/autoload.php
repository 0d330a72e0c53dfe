<?php

// Laravel comes from Debian's php-laravel-framework instead of a vendor folder,
// so that the tests need nothing but Debian's archive.
require 'Illuminate/autoload.php';

spl_autoload_register(function (string $class): void {
    if (str_starts_with($class, 'App\\')) {
        require __DIR__.'/../app/'.str_replace('\\', '/', substr($class, 4)).'.php';
    }
});
