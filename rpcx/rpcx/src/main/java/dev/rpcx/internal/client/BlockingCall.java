package dev.rpcx.internal.client;

import dev.rpcx.Metadata;
import dev.rpcx.RPCXException;
import dev.rpcx.internal.call.StreamSender;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A call that blocks its caller's thread, which waits for a connection and for the reply. The state of the call is in
 * local variables, so a call that succeeds allocates nothing here.
 */
final class BlockingCall {
    private BlockingCall() {}

    static @Nullable Object call(ClientSteps steps, Object[] arguments, Metadata metadata, long deadline) {
        Route route = steps.route;
        int key = steps.method.key(arguments);
        long permit = route.called();
        try {
            return attempts(steps, arguments, metadata, deadline, key, permit);
        } finally {
            route.releasePermit(permit);
        }
    }

    /** Makes attempts until one succeeds, or until one fails and no other follows. */
    private static @Nullable Object attempts(
            ClientSteps steps, Object[] arguments, Metadata metadata, long deadline, int key, long permit) {
        Route route = steps.route;
        Attempts earlier = null;
        while (true) {
            ClientCall call;
            try {
                call = awaitSlot(steps, key, Attempts.avoided(earlier), arguments, metadata, deadline, permit);
            } catch (RPCXException unsent) {
                throw Attempts.callerError(earlier, unsent);
            }
            long serial = call.serial;
            ClientConnection connection = call.connection;
            ClientAddress used;
            RPCXException error;
            Health.Outcome outcome;
            StreamSender upload = call.upload;
            boolean isHeld = true;
            try {
                if (upload != null) {
                    steps.endTrialOnceTaken(call, upload, deadline, permit);
                }
                call.sendBlocking();
                if (upload != null) {
                    RequestWriter.subscribe(upload, arguments);
                }
                error = call.await();
                used = connection.address();
                outcome = steps.ended(earlier, used, error, call.givenNanos, deadline, serial);
                if (error == null) {
                    route.recordOutcome(outcome, permit);
                    try {
                        return steps.reader.read(call.body);
                    } finally {
                        call.callerDone();
                        isHeld = false;
                    }
                }
                call.callerDone();
                isHeld = false;
            } finally {
                if (isHeld) {
                    // Only stores: if the stack is exhausted, no method can be called.
                    call.orphan = serial;
                    connection.slots.hasOrphans = true;
                }
            }
            Attempts all = Attempts.next(earlier, steps, error, upload, used);
            if (all == null) {
                route.recordOutcome(outcome, permit);
                throw Attempts.callerError(earlier, Health.named(error, used, steps.method));
            }
            earlier = all;
        }
    }

    /**
     * Waits for a connection and takes a slot. If other calls take all slots of the connection meanwhile, waits again.
     */
    private static ClientCall awaitSlot(
            ClientSteps steps,
            int key,
            @Nullable ClientAddress avoidedFirst,
            Object[] arguments,
            Metadata metadata,
            long deadline,
            long permit) {
        ClientConnection on = avoidedFirst == null ? null : steps.route.readyBeside(List.of(avoidedFirst));
        while (true) {
            if (on == null) {
                on = steps.route.await(key, deadline, steps.times, permit);
            }
            ClientCall call = steps.writer.prepareOrWait(on, key, arguments, null, metadata, deadline, on.nanoTime());
            if (call != null) {
                return call;
            }
            // the next choice includes the avoided instance, which may be the only one that is not full
            on = null;
        }
    }
}
