package dev.tollgate;

/** A call without the answer that was asked for. */
public class TollgateException extends RuntimeException {
    private static final long serialVersionUID = 1;

    TollgateException(String message, Throwable cause) {
        super(message, cause);
    }
}
