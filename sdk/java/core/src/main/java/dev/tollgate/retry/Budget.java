package dev.tollgate.retry;

import java.time.InstantSource;

/** Keeps retries to a tenth of the calls, or one a second. */
final class Budget {
    private static final int MAX = 100;
    private static final int RETRY = 10;

    private final InstantSource clock;
    private int balance = MAX;
    private long last = Long.MIN_VALUE;

    Budget(InstantSource clock) {
        this.clock = clock;
    }

    synchronized void earn() {
        balance = Math.min(balance + 1, MAX);
    }

    synchronized boolean spend() {
        var now = clock.millis();
        if (balance >= RETRY) balance -= RETRY;
        else if (last != Long.MIN_VALUE && now - last < 1000) return false;
        last = now;
        return true;
    }
}
