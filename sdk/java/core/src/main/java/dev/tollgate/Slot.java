package dev.tollgate;

import java.lang.System.Logger;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A slot of a rule that counts requests in flight, or the refusal of one. It renews itself until it is closed:
 * {@code try (var slot = tollgate.acquireSlot(request)) { … }}.
 */
public final class Slot implements AutoCloseable {
    private static final Logger LOG = System.getLogger("dev.tollgate");
    private static final long TTL_MAX = TimeUnit.HOURS.toMillis(24);
    private static final ScheduledThreadPoolExecutor RENEWALS = renewals();

    private final Tollgate client;
    private final Decision decision;
    private final String receipt;
    private final AtomicBoolean open = new AtomicBoolean(true);
    private volatile boolean lost;
    private volatile boolean released;
    private volatile ScheduledFuture<?> renewal;

    Slot(Tollgate client, Decision decision) {
        this(client, decision, decision.isAllowed() ? decision.slot().orElse(null) : null);
    }

    private Slot(Tollgate client, Decision decision, String receipt) {
        this.client = client;
        this.decision = decision;
        this.receipt = receipt;
        if (receipt == null) return;
        // At every third of the time to live: two renewals may fail before the slot is lost.
        var every = Math.max(10, Math.min(decision.ttlMillis().orElse(30_000L), TTL_MAX) / 3);
        renewal = RENEWALS.scheduleWithFixedDelay(this::renew, every, every, TimeUnit.MILLISECONDS);
    }

    /** Renews the slots of a reservation until it is closed, which is to be done before the reservation is settled. Releases nothing. */
    public static AutoCloseable keep(Tollgate client, Decision decision) {
        if (decision.reservation().isEmpty() || decision.ttlMillis().isEmpty()) return () -> { };
        var slot = new Slot(client, decision, decision.reservation().get());
        return slot::stop;
    }

    public Decision decision() {
        return decision;
    }

    public boolean isAllowed() {
        return decision.isAllowed();
    }

    /** True once the server said that the slot has expired: the work has no claim any more. */
    public boolean isLost() {
        return lost;
    }

    /** Gives the slot back; {@link #isReleased()} says whether it was still held. If the server is away, the slot expires by itself. */
    @Override
    public void close() {
        if (!stop() || receipt == null) return;
        try {
            released = client.releaseSlot(receipt);
        } catch (TollgateException e) {
            LOG.log(Logger.Level.WARNING, "a slot was not released and expires by itself: {0}", e.getMessage());
        }
    }

    public boolean isReleased() {
        return released;
    }

    private boolean stop() {
        if (!open.compareAndSet(true, false)) return false;
        if (renewal != null) renewal.cancel(false);
        return true;
    }

    private void renew() {
        try {
            if (!open.get() || client.renewSlot(receipt)) return;
            lost = open.get();
            stop();
        } catch (TollgateException e) {
            LOG.log(Logger.Level.WARNING, "a slot was not renewed: {0}", e.getMessage());
        }
    }

    /** Few daemon threads for all slots: a renewal takes at most the client's timeout. */
    private static ScheduledThreadPoolExecutor renewals() {
        var executor = new ScheduledThreadPoolExecutor(2, task -> {
            var thread = new Thread(task, "tollgate-slots");
            thread.setDaemon(true);
            return thread;
        });
        executor.setRemoveOnCancelPolicy(true);
        return executor;
    }
}
