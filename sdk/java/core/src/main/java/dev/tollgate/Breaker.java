package dev.tollgate;

import java.util.function.LongSupplier;

/** Makes no calls to a server that does not answer: opens after five failures in a row, then lets one call pass after each pause. */
final class Breaker {
    private static final int FAILURES_MAX = 5;
    private static final long PAUSE_MIN = 1_000_000_000L;
    private static final long PAUSE_MAX = 30_000_000_000L;

    /** What became of a call that was admitted. */
    enum Result { SUCCEEDED, FAILED, ABANDONED }

    private final LongSupplier nanos;
    private int failures;
    private long pause = PAUSE_MIN;
    private long openedAt;
    private boolean probing;

    Breaker(LongSupplier nanos) {
        this.nanos = nanos;
    }

    /** A call that may be made. */
    final class Admission {
        private final boolean probe;

        private Admission(boolean probe) {
            this.probe = probe;
        }

        void report(Result result) {
            Breaker.this.report(result, probe);
        }
    }

    /** Null while no call is to be made. */
    synchronized Admission admit() {
        var probe = failures >= FAILURES_MAX;
        if (probe && (probing || nanos.getAsLong() - openedAt < pause)) return null;
        probing |= probe;
        return new Admission(probe);
    }

    private synchronized void report(Result result, boolean probe) {
        if (probe) probing = false;
        switch (result) {
            case ABANDONED -> { }
            case SUCCEEDED -> {
                failures = 0;
                pause = PAUSE_MIN;
            }
            case FAILED -> {
                var wasOpen = failures >= FAILURES_MAX;
                failures = Math.min(failures + 1, FAILURES_MAX);
                if (probe && wasOpen) pause = Math.min(2 * pause, PAUSE_MAX);
                // Calls that were already under way when it opened do not prolong the pause.
                if (failures == FAILURES_MAX && (probe || !wasOpen)) openedAt = nanos.getAsLong();
            }
        }
    }
}
