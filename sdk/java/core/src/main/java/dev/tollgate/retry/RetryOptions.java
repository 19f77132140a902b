package dev.tollgate.retry;

import java.time.Duration;

/** How often, how long, and with what dice: 3 attempts within a minute, full jitter from 100 ms to 20 s, unless said otherwise. */
public record RetryOptions(int attempts, Duration base, Duration cap, Duration deadline, boolean equalJitter, boolean adaptive) {
    public RetryOptions {
        if (attempts < 1 || base.isNegative() || cap.isNegative() || deadline.isNegative()) throw new IllegalArgumentException("attempts are at least 1, times are not negative");
    }

    public static RetryOptions defaults() {
        return new RetryOptions(3, Duration.ofMillis(100), Duration.ofSeconds(20), Duration.ofMinutes(1), false, false);
    }

    /** Refuses calls here that an overloaded API would refuse. */
    public RetryOptions adaptive(boolean adaptive) {
        return new RetryOptions(attempts, base, cap, deadline, equalJitter, adaptive);
    }

    public RetryOptions attempts(int attempts) {
        return new RetryOptions(attempts, base, cap, deadline, equalJitter, adaptive);
    }

    public RetryOptions deadline(Duration deadline) {
        return new RetryOptions(attempts, base, cap, deadline, equalJitter, adaptive);
    }
}
