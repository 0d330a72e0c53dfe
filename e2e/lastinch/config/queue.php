<?php

return [
    'default' => 'database',
    'connections' => [
        // after_commit stays false: the job is to be part of the transaction.
        'database' => ['driver' => 'database', 'table' => 'jobs', 'queue' => 'default', 'retry_after' => 90, 'after_commit' => false],
    ],
    'failed' => ['driver' => 'null'],
];
