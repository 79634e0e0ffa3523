package dev.rpcx.internal.client;

import dev.rpcx.Metadata;
import dev.rpcx.RPCXException;
import dev.rpcx.internal.call.StreamSender;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Makes calls that block the caller's thread until the reply has come or the call has failed. The state of a call is
 * kept in local variables, so that this class allocates nothing for a call whose first attempt succeeds.
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

    /** Makes attempts until one succeeds, or until one fails and {@link Attempts} allows no other. */
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
                    // The two stores let the event loop release the slot. No method is called here, since a method call
                    // fails if the stack is exhausted. The order of the stores matters, see CallSlots.hasOrphans.
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
     * Waits for a connection and takes a slot, that is, room for one call on the connection. If other calls have taken
     * all slots of the connection, and no other connection is ready, this method waits again.
     *
     * @param avoidedFirst instance that the first choice of a connection avoids; null for none
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
            // the next choice includes the avoided instance, since all other instances may be full
            on = null;
        }
    }
}
