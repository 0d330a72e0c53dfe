<?php

$server = [
    'host' => env('DB_HOST', '127.0.0.1'),
    'port' => env('DB_PORT'),
    'database' => env('DB_DATABASE'),
    'username' => env('DB_USERNAME'),
    'password' => env('DB_PASSWORD', ''),
];

return [
    'default' => env('DB_CONNECTION', 'sqlite'),
    'connections' => [
        'sqlite' => ['driver' => 'sqlite', 'database' => env('DB_DATABASE')],
        'pgsql' => $server + ['driver' => 'pgsql', 'charset' => 'utf8', 'schema' => 'public'],
        'mysql' => $server + ['driver' => 'mysql', 'charset' => 'utf8mb4', 'collation' => 'utf8mb4_unicode_ci'],
    ],
    'migrations' => 'migrations',
];
