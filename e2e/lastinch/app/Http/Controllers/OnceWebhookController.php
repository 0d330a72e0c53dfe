<?php

namespace App\Http\Controllers;

use App\Jobs\Enrol;
use App\Models\LedgerEntry;
use App\Models\Payment;
use App\Once;
use Illuminate\Http\JsonResponse;
use Illuminate\Http\Request;
use Illuminate\Routing\Controller;

/** A webhook handler with the last inch. The check of the signature, which it would have too, is left out. */
class OnceWebhookController extends Controller
{
    public function paid(Request $request): JsonResponse
    {
        return $this->once($request, function (array $event) {
            Payment::create(['event' => $event['id'], 'amount' => $event['data']['object']['amount']]);
        });
    }

    /** The effect is that the job stands in the queue's table, which is in the same database. */
    public function queued(Request $request): JsonResponse
    {
        return $this->once($request, function (array $event) use ($request) {
            dispatch(new Enrol($request->header('Oncegate-Event'), $event['data']['object']['customer']));
        });
    }

    private function once(Request $request, callable $effect): JsonResponse
    {
        $name = (string) $request->header('Oncegate-Event');
        abort_if($name === '', 503, 'This endpoint is reached through oncegate only.');
        $event = $request->json()->all();
        LedgerEntry::create(['event' => $event['id'], 'oncegate_event' => $name, 'receipt' => 'a run']); // for the tests to count
        $new = Once::run($name, (int) $request->header('Oncegate-Attempt'), fn () => $effect($event));

        return response()->json(['received' => true, 'new' => $new]);
    }
}
