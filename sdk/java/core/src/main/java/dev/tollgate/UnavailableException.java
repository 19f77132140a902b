package dev.tollgate;

/** No usable answer. Unless {@link #isNotSent()}, the server may have charged the call. */
public final class UnavailableException extends TollgateException {
    private static final long serialVersionUID = 1;

    private final boolean notSent;
    private final boolean busy;

    private UnavailableException(String message, Throwable cause, boolean notSent, boolean busy) {
        super(message, cause);
        this.notSent = notSent;
        this.busy = busy;
    }

    static UnavailableException sent(String message, Throwable cause) {
        return new UnavailableException(message, cause, false, false);
    }

    static UnavailableException notSent(String message, Throwable cause) {
        return new UnavailableException(message, cause, true, false);
    }

    /** All connections were in use until the deadline: that says nothing about the server. */
    static UnavailableException busy() {
        return new UnavailableException("all connections were in use until the deadline", null, true, true);
    }

    /** Nothing reached the server: the call may be repeated. */
    public boolean isNotSent() {
        return notSent;
    }

    boolean isBusy() {
        return busy;
    }
}
