package dev.tollgate.retry;

import dev.tollgate.Limit;
import java.time.Duration;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.TimeUnit;

/**
 * A limit of this process that callers wait for, first come, first served: every caller takes its place when it asks, so that none is overtaken
 * and nothing has to be woken.
 */
public final class Pacer {
    private final Limit limit;
    private long fullAt = System.nanoTime();

    public Pacer(Limit limit) {
        this.limit = limit;
    }

    /** Waits until the limit has room. If that takes longer than {@code patience}, it fails at once and takes nothing. */
    public void acquire(long units, Duration patience) throws InterruptedException, TimeoutException {
        if (units < 0 || units > limit.capacity()) throw new IllegalArgumentException(units + " units never fit a limit of " + limit.capacity() + " at once");
        TimeUnit.NANOSECONDS.sleep(take(units, patience));
    }

    private synchronized long take(long units, Duration patience) throws TimeoutException {
        var now = System.nanoTime();
        var next = (fullAt - now < 0 ? now : fullAt) + limit.interval() * units;
        var wait = Math.max(0, next - now - limit.interval() * limit.capacity());
        if (Duration.ofNanos(wait).compareTo(patience) > 0) throw new TimeoutException("the limit has no room within " + patience);
        fullAt = next;
        return wait;
    }
}
