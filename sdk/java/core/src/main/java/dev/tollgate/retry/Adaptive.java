package dev.tollgate.retry;

import java.time.InstantSource;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.DoubleSupplier;

/**
 * Refuses calls with probability max(0, (requests − 2 accepts) / (requests + 1)), counted over two minutes in slices of a second, so that
 * its size does not depend on the load.
 */
final class Adaptive {
    private static final int ACCEPTING = 2;
    private static final long WINDOW = 120;

    private static final class Slice {
        final long second;
        int requests;
        int accepts;

        Slice(long second) {
            this.second = second;
        }
    }

    private final InstantSource clock;
    private final DoubleSupplier random;
    private final Deque<Slice> slices = new ArrayDeque<>();
    private int requests;
    private int accepts;

    Adaptive(InstantSource clock, DoubleSupplier random) {
        this.clock = clock;
        this.random = random;
    }

    /** Is asked before an attempt, which counts as a request either way. */
    synchronized boolean refuses() {
        var slice = current();
        var excess = requests - ACCEPTING * accepts;
        var refused = excess > 0 && random.getAsDouble() < (double) excess / (requests + 1);
        slice.requests++;
        requests++;
        return refused;
    }

    /** An attempt that was made was not told "later". */
    synchronized void accepted() {
        current().accepts++;
        accepts++;
    }

    private Slice current() {
        var second = Math.floorDiv(clock.millis(), 1000L);
        while (!slices.isEmpty() && second - slices.getFirst().second >= WINDOW) {
            var old = slices.removeFirst();
            requests -= old.requests;
            accepts -= old.accepts;
        }
        if (slices.isEmpty() || slices.getLast().second < second) slices.addLast(new Slice(second));
        return slices.getLast();
    }
}
