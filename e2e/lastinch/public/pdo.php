<?php

// A webhook handler in plain PHP with the last inch.

/** Commits the effect and the note of its event together, unless they have been before. */
function once(PDO $db, string $event, ?int $attempt, callable $effect): bool
{
    $db->beginTransaction();
    try {
        // The unique key decides, and waits for a transaction that is about to note the same event.
        $db->prepare('INSERT INTO oncegate_events (event, attempt) VALUES (?, ?)')->execute([$event, $attempt]);
    } catch (PDOException $e) {
        $db->rollBack();
        if (substr((string) $e->getCode(), 0, 2) !== '23') { // an integrity constraint: it is there
            throw $e;
        }

        return false;
    }
    try {
        $effect();
        $db->commit();
    } catch (Throwable $e) {
        if ($db->inTransaction()) {
            $db->rollBack();
        }
        throw $e; // a 500: whether the commit was done, the witness will tell
    }

    return true;
}

$kind = getenv('DB_CONNECTION');
$dsn = $kind === 'sqlite' ? 'sqlite:'.getenv('DB_DATABASE')
    : sprintf('%s:host=%s;port=%s;dbname=%s', $kind, getenv('DB_HOST'), getenv('DB_PORT'), getenv('DB_DATABASE'));
$db = new PDO($dsn, getenv('DB_USERNAME') ?: null, getenv('DB_PASSWORD') ?: null, [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);

$name = $_SERVER['HTTP_ONCEGATE_EVENT'] ?? '';
if ($name === '') {
    http_response_code(503); // this endpoint is reached through oncegate only
    exit;
}
$event = json_decode(file_get_contents('php://input'), true);
$db->prepare('INSERT INTO ledger_entries (event, oncegate_event, receipt) VALUES (?, ?, ?)')->execute([$event['id'], $name, 'a run']); // for the tests to count
$new = once($db, $name, (int) $_SERVER['HTTP_ONCEGATE_ATTEMPT'], function () use ($db, $event) {
    $db->prepare('INSERT INTO payments (event, amount) VALUES (?, ?)')->execute([$event['id'], $event['data']['object']['amount']]);
});

header('Content-Type: application/json');
echo json_encode(['received' => true, 'new' => $new]);
