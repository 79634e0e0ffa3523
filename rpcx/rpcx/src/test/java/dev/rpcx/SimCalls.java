package dev.rpcx;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Keeps everything that the callers and handlers in a {@link SimWorld} know about their calls, and checks what must be
 * true of it.
 */
final class SimCalls {
    /**
     * The timer of a connection finds deadlines that are close together by one look. So it looks at a deadline this
     * much later at most.
     */
    private static final long TICK_NANOS = TimeUnit.MILLISECONDS.toNanos(2);

    /** A request need not carry a time that is shorter than the connection's standard one by no more than this. */
    private static final long TIME_TOLERANCE_NANOS = TimeUnit.MICROSECONDS.toNanos(100);

    /** Holds what the caller of one call sees, and the handlers that the call has had. */
    final class Call {
        final String id;
        final String kind;
        final long begunNanos;
        final long timeNanos;
        final boolean mayRunTwice;

        /** This is true if what the server says to the call's caller is true. */
        final boolean isTrusting = trusting;

        private final long laggedBefore;
        private final @Nullable SimPlatform caller;
        private int handlers;
        private boolean ended;
        private boolean replied;
        private RPCXException.@Nullable Executed executed;
        private @Nullable String outcome;

        private Call(String id, String kind, long timeNanos, boolean mayRunTwice) {
            this.id = id;
            this.kind = kind;
            this.begunNanos = world.now();
            this.timeNanos = timeNanos;
            this.mayRunTwice = mayRunTwice;
            this.laggedBefore = world.laggedNanos();
            this.caller = world.process();
        }

        void succeeded(Object value, Object expected) {
            if (isTrusting && !expected.equals(value)) {
                world.violation(this + " was answered with " + brief(value) + " (expected: " + brief(expected) + ")");
            }
            replied = true;
            end("replied");
        }

        void failed(Throwable thrown) {
            Throwable cause =
                    thrown instanceof CompletionException && thrown.getCause() != null ? thrown.getCause() : thrown;
            if (cause instanceof RPCXException known) {
                executed = known.executed();
                end(known.code() + " " + known.executed() + ": " + known.getMessage());
            } else if (cause instanceof CancellationException) {
                end("given up");
            } else {
                world.violation(this + " ended with " + cause);
                end(String.valueOf(cause));
            }
        }

        /** Ends the call. Its caller has given it up, or has learnt that it has ended. */
        void end(String how) {
            world.note(how.length(), "%s: %s", this, how);
            if (ended) {
                world.violation(this + " ended twice: " + outcome + ", then " + how);
            }
            ended = true;
            outcome = how;
            long late = world.now() - begunNanos - timeNanos - (world.laggedNanos() - laggedBefore);
            if (late > TICK_NANOS) {
                world.violation(this + " ended " + late / 1000 + " µs after its time: " + how);
            }
        }

        boolean isEnded() {
            return ended;
        }

        boolean isReplied() {
            return replied;
        }

        @Override
        public String toString() {
            return kind + " " + id + " (" + timeNanos / 1000 + " µs)";
        }

        private void check() {
            if (!ended && (caller == null || !caller.isKilled())) {
                world.violation(this + " never ended; handlers: " + handlers);
            }
            if (!isTrusting) {
                return;
            }
            if (replied && handlers == 0) {
                world.violation(this + " was answered without a handler");
            }
            if (executed == RPCXException.Executed.NOT_EXECUTED && handlers > 0) {
                world.violation(this + " was executed, and its caller heard " + outcome);
            }
            if (executed == RPCXException.Executed.EXECUTED && handlers == 0) {
                world.violation(this + " was not executed, and its caller heard " + outcome);
            }
            if (handlers > 1 && !mayRunTwice) {
                world.violation(this + " was executed " + handlers + " times");
            }
        }
    }

    /** Stands for a handler, or for a publisher that a handler or caller has given. It begins once and ends once. */
    final class Handler {
        private final String what;
        private final @Nullable SimPlatform process = world.process();
        private boolean ended;

        private Handler(String what) {
            this.what = what;
        }

        void end() {
            ended = true;
        }

        private void check() {
            if (!ended && (process == null || !process.isKilled())) {
                world.violation(what + " never ended");
            }
        }
    }

    private final SimWorld world;
    private final Map<String, Call> calls = new HashMap<>();
    private final List<Call> all = new ArrayList<>();
    private final List<Handler> handlers = new ArrayList<>();
    private boolean trusting = true;

    SimCalls(SimWorld world) {
        this.world = world;
    }

    /** Sets whether the servers of the calls that begin now are ours. */
    void trusting(boolean are) {
        trusting = are;
    }

    Call begin(String kind, long timeNanos, boolean mayRunTwice) {
        Call call = new Call("c" + all.size(), kind, timeNanos, mayRunTwice);
        world.note(all.size(), "%s begins", call);
        all.add(call);
        calls.put(call.id, call);
        return call;
    }

    /** Records on its thread that a handler begins. @param id of the call; another for a peer's that no caller made */
    Handler handling(String id) {
        Call call = calls.get(id);
        world.note(2, "handler of %s", call == null ? id : call);
        if (call != null) {
            call.handlers++;
            long left = CallContext.current().orElseThrow().remainingNanos();
            if (left > call.timeNanos + TIME_TOLERANCE_NANOS) {
                world.violation(call + " had " + left / 1000 + " µs left when its handler began");
            }
        }
        return open("handler of " + (call == null ? id : call));
    }

    Handler open(String what) {
        Handler handler = new Handler(what);
        handlers.add(handler);
        return handler;
    }

    int count() {
        return all.size();
    }

    List<Call> all() {
        return all;
    }

    boolean allEnded() {
        for (int i = 0; i < all.size(); i++) {
            if (!all.get(i).ended) {
                return false;
            }
        }
        return true;
    }

    /** Checks all calls and handlers. It is called when nothing happens any more. */
    void check() {
        all.forEach(Call::check);
        handlers.forEach(Handler::check);
    }

    private static String brief(Object value) {
        String text = String.valueOf(value);
        return text.length() <= 60 ? text : text.substring(0, 60) + "… of " + text.length();
    }
}
