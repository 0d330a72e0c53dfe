<?php

return [
    'default' => 'errorlog',
    'channels' => [
        'errorlog' => ['driver' => 'errorlog', 'level' => 'warning'],
        'emergency' => ['path' => storage_path('logs/laravel.log')],
    ],
];
