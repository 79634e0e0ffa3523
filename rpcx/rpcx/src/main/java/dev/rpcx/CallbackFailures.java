package dev.rpcx;

import java.time.InstantSource;

/** What callbacks of users throw, in the log: it changes nothing for their calls. */
final class CallbackFailures {
    /** What a peer sends may have the same callback fail again and again. */
    static final Complaint COMPLAINT = new Complaint(System.getLogger("dev.rpcx.callbacks"), InstantSource.system());

    private CallbackFailures() {}

    static void log(Throwable thrown) {
        COMPLAINT.log("a callback has failed, which changes nothing for its call", thrown);
    }
}
