package dev.tollgate.retry;

import java.io.IOException;

/** A call that was not made, because the API refuses most calls at the moment. */
public final class ThrottledException extends IOException {
    private static final long serialVersionUID = 1;

    ThrottledException() {
        super("not called, because the API refuses most calls at the moment");
    }
}
