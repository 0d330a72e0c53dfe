<?php

namespace App\Http\Controllers;

use App\Models\Enrolment;
use App\Models\LedgerEntry;
use App\Models\Payment;
use Illuminate\Http\JsonResponse;
use Illuminate\Http\Request;
use Illuminate\Routing\Controller;
use Illuminate\Support\Str;

/**
 * The careless handler that oncegate is for: it checks Stripe's signature as
 * Stripe's own library does, and takes each delivery for a new payment.
 */
class StripeWebhookController extends Controller
{
    public function __invoke(Request $request): JsonResponse
    {
        $payload = $request->getContent();
        if (! $this->signed($payload, (string) $request->header('Stripe-Signature'))) {
            return response()->json(['error' => 'bad signature'], 400);
        }

        $event = json_decode($payload, true);
        $receipt = Str::random(32);
        $seen = LedgerEntry::create([
            'event' => $event['id'],
            'oncegate_event' => $request->header('Oncegate-Event'),
            'oncegate_attempt' => $request->header('Oncegate-Attempt'),
            'receipt' => $receipt,
        ]);
        Payment::create([
            'event' => $event['id'],
            'amount' => $event['data']['object']['amount'] ?? 0,
        ]);
        Enrolment::create([
            'event' => $event['id'],
            'student' => $event['data']['object']['customer'] ?? '',
        ]);

        usleep(1000 * config('shop.work_ms'));

        $seen->update(['finished' => true]);

        return response()->json(['received' => true, 'receipt' => $receipt]);
    }

    private function signed(string $payload, string $header): bool
    {
        $time = null;
        $signatures = [];
        foreach (explode(',', $header) as $item) {
            [$name, $value] = array_pad(explode('=', trim($item), 2), 2, '');
            if ($name === 't') {
                $time = $value;
            } elseif ($name === 'v1') {
                $signatures[] = $value;
            }
        }
        if ($time === null || ! ctype_digit($time) || abs(time() - (int) $time) > config('shop.tolerance_s')) {
            return false;
        }
        $expected = hash_hmac('sha256', "{$time}.{$payload}", config('shop.stripe_secret'));
        foreach ($signatures as $signature) {
            if (hash_equals($expected, $signature)) {
                return true;
            }
        }

        return false;
    }
}
