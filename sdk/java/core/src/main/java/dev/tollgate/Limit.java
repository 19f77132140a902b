package dev.tollgate;

import java.time.Duration;
import java.util.regex.Pattern;

/** A limit of this process: so many requests in a window, by GCRA in whole nanoseconds, as the server computes it. */
public final class Limit {
    private static final Pattern TEXT = Pattern.compile("([0-9]{1,15})/([0-9]{1,9})(ms|s|m|h)");

    private final long requests;
    private final long windowNanos;
    private final long burst;
    private final long interval;

    private Limit(long requests, long windowNanos, long burst) {
        if (windowNanos <= 0) throw new IllegalArgumentException("the window of a limit is longer than nothing");
        this.requests = requests;
        this.windowNanos = windowNanos;
        if (requests == 0 || burst == 0) {
            this.burst = 0;
            this.interval = 1;
            return;
        }
        this.burst = burst;
        this.interval = Long.divideUnsigned(windowNanos, requests);
        if (interval == 0) throw new IllegalArgumentException("a limit allows at most one unit in a nanosecond");
        if (multiplyHigh(interval, burst) != 0 || interval * burst < 0) {
            throw new IllegalArgumentException("the bucket takes more than 292 years to fill");
        }
    }

    /** So many requests in a window, as many at once. */
    public static Limit of(long requests, Duration window) {
        return new Limit(requests, window.toNanos(), requests);
    }

    /** Reads {@code 5/1m}: requests, and a window in ms, s, m or h. */
    public static Limit parse(String text) {
        var match = TEXT.matcher(text);
        if (!match.matches()) {
            throw new IllegalArgumentException("'" + text + "' is not a limit; write 100/1m: requests, and a window in ms, s, m or h");
        }
        var unit = switch (match.group(3)) {
            case "ms" -> 1_000_000L;
            case "s" -> 1_000_000_000L;
            case "m" -> 60_000_000_000L;
            default -> 3_600_000_000_000L;
        };
        var requests = Long.parseLong(match.group(1));
        return new Limit(requests, Math.multiplyExact(Long.parseLong(match.group(2)), unit), requests);
    }

    /** The same limit with another capacity. */
    public Limit withBurst(long burst) {
        return new Limit(requests, windowNanos, burst);
    }

    long requests() {
        return requests;
    }

    long windowNanos() {
        return windowNanos;
    }

    /** How many units fit at once. */
    public long capacity() {
        return burst;
    }

    /** Nanoseconds until one unit comes back. */
    public long interval() {
        return interval;
    }

    /** What a bucket says to one request; times are nanoseconds. */
    public record Outcome(boolean allowed, long limit, long remaining, long retryAfter, boolean never, long resetAfter, long nextUnit, long fullAt) {}

    /**
     * Decides a request of a bucket that will be full at {@code fullAt}. All numbers are unsigned, times nanoseconds of any clock; a bucket that
     * is full by now, such as 0, is an unused one. {@link Outcome#fullAt()} is its next state.
     */
    public Outcome take(long fullAt, long now, long cost) {
        var tolerance = interval * burst;
        long ahead = 0;
        if (Long.compareUnsigned(fullAt, now) > 0 && burst > 0) {
            // A clock that stepped back makes no caller wait for longer than one full bucket.
            ahead = Long.compareUnsigned(fullAt - now, tolerance) < 0 ? fullAt - now : tolerance;
        }
        var never = Long.compareUnsigned(cost, burst) > 0 || burst == 0;
        var needed = interval * cost; // at most the tolerance, unless never
        var allowed = !never && needed <= tolerance - ahead;
        long retryAfter = 0;
        if (allowed) {
            ahead += needed;
        } else if (!never) {
            retryAfter = ahead + needed - tolerance;
        }
        var remaining = (tolerance - ahead) / interval;
        var nextUnit = ahead > 0 ? ahead + interval * (remaining + 1) - tolerance : 0;
        var next = cost == 0 || ahead == 0 ? fullAt : saturatingAdd(now, ahead);
        return new Outcome(allowed, burst, remaining, retryAfter, never, ahead, nextUnit, next);
    }

    private static long saturatingAdd(long a, long b) {
        var sum = a + b;
        return Long.compareUnsigned(sum, a) < 0 ? -1L : sum; // -1 is the greatest unsigned number
    }

    /** The upper 64 bits of an unsigned product; {@code Math.unsignedMultiplyHigh} came with Java 18. */
    private static long multiplyHigh(long a, long b) {
        return Math.multiplyHigh(a, b) + ((a >> 63) & b) + ((b >> 63) & a);
    }
}
