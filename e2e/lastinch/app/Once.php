<?php

namespace App;

use Illuminate\Support\Facades\DB;

/** Commits the effect of an event and the note that it has been in one transaction. */
final class Once
{
    /**
     * Runs the effect unless it has been committed before. All that the effect
     * writes must go over this connection. Returns whether it ran.
     */
    public static function run(string $event, ?int $attempt, callable $effect): bool
    {
        return DB::transaction(function () use ($event, $attempt, $effect) {
            // Waits for another transaction that is about to note the same event.
            $new = DB::table('oncegate_events')->insertOrIgnore(['event' => $event, 'attempt' => $attempt]);
            if ($new === 1) {
                $effect();
            }

            return $new === 1;
        });
    }
}
