<?php

namespace App\Jobs;

use App\Models\Enrolment;
use App\Once;
use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Queue\InteractsWithQueue;

/** A queue delivers at least once, too: the job notes under a name of its own that it has had its effect. */
class Enrol implements ShouldQueue
{
    use InteractsWithQueue;
    use Queueable;

    /** @var string */
    public $event;

    /** @var string */
    public $student;

    public function __construct(string $event, string $student)
    {
        $this->event = $event;
        $this->student = $student;
    }

    public function handle(): void
    {
        Once::run($this->event.'#enrol', null, function () {
            Enrolment::create(['event' => $this->event, 'student' => $this->student]);
        });
    }
}
