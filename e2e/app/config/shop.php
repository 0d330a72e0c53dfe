<?php

return [
    'stripe_secret' => env('STRIPE_WEBHOOK_SECRET'),
    'tolerance_s' => 300,
    // How long the handler works on one event, in milliseconds.
    'work_ms' => (int) env('SHOP_WORK_MS', 200),
];
