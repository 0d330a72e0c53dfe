<?php

namespace App\Http\Controllers;

use Illuminate\Http\JsonResponse;
use Illuminate\Http\Request;
use Illuminate\Routing\Controller;
use Illuminate\Support\Facades\URL;

/** Tells what the app makes of a request, so that two ways to it can be compared. */
class EchoController extends Controller
{
    public function __invoke(Request $request): JsonResponse
    {
        $headers = array_filter($_SERVER, fn ($name) => str_starts_with($name, 'HTTP_'), ARRAY_FILTER_USE_KEY);
        ksort($headers);

        return response()->json([
            'method' => $request->method(),
            'target' => $_SERVER['REQUEST_URI'],
            'full_url' => $request->fullUrl(),
            'root' => $request->root(),
            'ip' => $request->ip(),
            'secure' => $request->secure(),
            'route_url' => route('echo'),
            'content_type' => $_SERVER['CONTENT_TYPE'] ?? null,
            'content_length' => $_SERVER['CONTENT_LENGTH'] ?? null,
            'body_length' => strlen(file_get_contents('php://input')),
            'body_sha256' => hash('sha256', $request->getContent()),
            'headers' => $headers,
        ]);
    }

    public function link(): JsonResponse
    {
        return response()->json(['url' => URL::signedRoute('ticket', ['ticket' => 7])]);
    }

    public function ticket(int $ticket): JsonResponse
    {
        return response()->json(['ticket' => $ticket]);
    }
}
