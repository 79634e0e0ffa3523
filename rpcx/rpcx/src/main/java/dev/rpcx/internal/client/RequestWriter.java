package dev.rpcx.internal.client;

import dev.rpcx.Metadata;
import dev.rpcx.RPCXException;
import dev.rpcx.codec.Codec;
import dev.rpcx.codec.CodecException;
import dev.rpcx.codec.HeapArray;
import dev.rpcx.internal.ThrowableText;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.call.CurrentCall;
import dev.rpcx.internal.call.StreamSender;
import dev.rpcx.internal.io.LoopThread;
import dev.rpcx.internal.wire.MetadataFields;
import dev.rpcx.internal.wire.Outbound;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Takes a slot of a connection for each attempt at a call of one method, and writes the request into the slot. A
 * request contains the method's number or name, the remaining time, the metadata and the arguments. A request that is
 * too large, comes too late or cannot be encoded is refused. If a connection does not take the request, another
 * connection is tried. The methods run on the thread that makes the attempt, which is a caller's thread or an event
 * loop.
 */
public final class RequestWriter {
    /**
     * Maximum number of instances that one attempt asks for a free slot, that is, for room for one more call on a
     * connection.
     */
    private static final int MAX_INSTANCES_ASKED = 8;

    private final ClientMethod method;

    /** Chooses another connection if the chosen one does not take a request. */
    private final Route route;

    /**
     * The message type of the requests: {@link Wire#NOTICE} if the method is one-way, otherwise {@link Wire#REQUEST}.
     */
    private final int type;

    private final byte[] serviceBytes;
    private final byte[] nameBytes;
    private final Codec<Object[]> parameters;

    /** The codec for the items of the stream that the method takes; null if the method takes no stream. */
    private final @Nullable Codec<Object> items;

    RequestWriter(ClientMethod method, Route route) {
        this.method = method;
        this.route = route;
        this.type = method.kind == ClientMethod.Kind.ONE_WAY ? Wire.NOTICE : Wire.REQUEST;
        this.serviceBytes = method.service.getBytes(StandardCharsets.UTF_8);
        this.nameBytes = method.name.getBytes(StandardCharsets.UTF_8);
        this.parameters = method.parameters;
        this.items = method.items;
    }

    /**
     * Takes a slot and writes the request into the slot, as {@link #prepare} does. If other calls have filled the
     * chosen connection, another connection is tried.
     *
     * <p>A caller must not choose a connection only to find out whether a connection is ready. The choice can use up
     * the single trial call that an instance gets after it was ejected for failures.
     *
     * @return the slot with the request; null if the call has to wait, because the chosen connection was full and no
     *     other connection is ready
     * @throws RPCXException if the call is too late or cannot be encoded, or if each connection that was tried has
     *     refused the call, for example because the connection is full
     */
    @Nullable
    ClientCall prepareOrWait(
            ClientConnection chosen,
            int key,
            Object[] arguments,
            @Nullable ByteBuf encoded,
            Metadata metadata,
            long deadline,
            long begun) {
        ClientConnection on = chosen;
        long now = begun;
        while (true) {
            try {
                return prepare(on, arguments, encoded, metadata, deadline, now);
            } catch (RPCXException refused) {
                if (!LocalFailure.is(LocalFailure.Why.FULL, refused)
                        || deadline - route.ticker().nanoTime() <= 0) {
                    throw refused;
                }
                ClientConnection next = route.ready(key);
                if (next == null) {
                    return null;
                }
                if (next.isFull()) {
                    throw refused;
                }
                on = next;
                now = on.nanoTime();
            }
        }
    }

    /**
     * Takes a slot of the given connection and writes the request into the slot. If the connection or its server does
     * not take the call, connections of other instances are tried. That costs the retry budget nothing, since nothing
     * has been sent. The caller of this method owns the returned slot.
     *
     * @param encoded arguments encoded when the call was made; null to encode {@code arguments} now
     * @param now time in nanoseconds at which this thread began this attempt
     * @throws RPCXException if the call is too late or cannot be encoded, if this client's requests hold too many
     *     bytes, or if no connection takes the call; in the last case, the exception is the first refusal
     */
    public ClientCall prepare(
            ClientConnection on,
            Object[] arguments,
            @Nullable ByteBuf encoded,
            Metadata metadata,
            long deadline,
            long now) {
        try {
            return prepareOn(on, arguments, encoded, metadata, deadline, now, List.of());
        } catch (RPCXException refused) {
            if (!(refused instanceof LocalFailure)) {
                throw refused;
            }
            return prepareElsewhere(on, refused, arguments, encoded, metadata, deadline);
        }
    }

    private ClientCall prepareElsewhere(
            ClientConnection on,
            RPCXException first,
            Object[] arguments,
            @Nullable ByteBuf encoded,
            Metadata metadata,
            long deadline) {
        List<ClientAddress> asked = new ArrayList<>(MAX_INSTANCES_ASKED);
        List<ClientAddress> unfit = new ArrayList<>(MAX_INSTANCES_ASKED);
        ClientConnection last = on;
        RPCXException refused = first;
        while (true) {
            asked.add(last.address());
            if (LocalFailure.is(LocalFailure.Why.UNFIT, refused)) {
                unfit.add(last.address());
            }
            ClientConnection next = asked.size() < MAX_INSTANCES_ASKED ? route.readyBeside(asked) : null;
            if (next == null) {
                throw first;
            }
            try {
                return prepareOn(next, arguments, encoded, metadata, deadline, next.nanoTime(), unfit);
            } catch (RPCXException again) {
                if (!(again instanceof LocalFailure)) {
                    throw again;
                }
                last = next;
                refused = again;
            }
        }
    }

    /**
     * Takes a slot of this connection, or of another connection of the same instance, and writes the request into the
     * slot.
     *
     * @param unfit other instances that have already been tried and do not take this call. If the instance of
     *     {@code on} takes the call, the fault lies with the other instances, and a failure is counted for each of them
     */
    private ClientCall prepareOn(
            ClientConnection on,
            Object[] arguments,
            @Nullable ByteBuf encoded,
            Metadata metadata,
            long deadline,
            long now,
            List<ClientAddress> unfit) {
        ClientCall call = acquire(on, deadline);
        ClientConnection used = on;
        long serial = call.serial;
        boolean isHeld = true;
        try {
            // If the connection is about to close because it was idle, the call takes a slot of another connection of
            // the instance. If no other connection is ready, the call stays on this one.
            while (used.isParting) {
                ClientConnection other = used.address().ready();
                if (other == null) {
                    break;
                }
                call.dropUnsent();
                isHeld = false;
                used = other;
                call = acquire(used, deadline);
                serial = call.serial;
                isHeld = true;
            }
            try {
                write(used, call, arguments, encoded, metadata, deadline, now);
                used.address().health().begins(deadline);
                if (!unfit.isEmpty()) {
                    unfit.forEach(ClientAddress::refused);
                }
            } catch (Throwable unsent) {
                used.address().health().unsent();
                // Everything is caught: the user's methods can throw anything, and the slot has to be given back.
                call.dropUnsent();
                isHeld = false;
                throw unsent;
            }
            isHeld = false;
        } finally {
            if (isHeld) {
                // If the stack is exhausted, no method can be called here. So these two stores ask the event loop to
                // release the slot. Their order matters, see CallSlots.hasOrphans.
                call.orphan = serial;
                used.slots.hasOrphans = true;
            }
        }
        return call;
    }

    /**
     * Takes a slot of a connection that was chosen for a call. If no slot is free and the call was the trial of an
     * ejected instance, another call can be the trial now.
     */
    private static ClientCall acquire(ClientConnection on, long deadline) {
        try {
            return on.slots.acquire(deadline);
        } catch (RPCXException full) {
            on.address().health().unsent();
            throw full;
        }
    }

    /**
     * Writes the request into the slot: first the number or name of the method, then the time that is left until the
     * deadline, the metadata and the arguments.
     *
     * @param encoded arguments encoded when the call was made; null to encode {@code arguments} now
     * @param now time in nanoseconds at which this thread began this attempt
     */
    private void write(
            ClientConnection connection,
            ClientCall call,
            Object[] arguments,
            @Nullable ByteBuf encoded,
            Metadata metadata,
            long deadline,
            long now) {
        try {
            ByteBuf out = call.body;
            int head = type;
            int number = connection.numberOf(method);
            if (number > 0) {
                Varint.write(out, number);
            } else {
                head |= Wire.NAMED;
                out.writeByte(serviceBytes.length).writeBytes(serviceBytes);
                out.writeByte(nameBytes.length).writeBytes(nameBytes);
            }
            long left = deadline - now;
            if (left <= 0) {
                throw late();
            }
            call.givenNanos = left;
            // Without the field TIME, a server assumes the full default time. The remaining time is rounded down, so
            // that it never grows on its way. If the request has to wait until the socket takes more bytes, the time
            // that is left when sending begins is written instead. If the request only waits until the event loop sends
            // it, the time is not written again, so this wait is not subtracted.
            long micros = Math.max(1, TimeUnit.NANOSECONDS.toMicros(left));
            int timeAt = out.writerIndex();
            if (connection.carriesTime(left) || !CurrentCall.isAbsent()) {
                head |= Wire.TIME;
                Varint.write(out, micros);
            }
            int timeBytes = out.writerIndex() - timeAt;
            int metadataAt = out.writerIndex();
            if (!metadata.isEmpty()) {
                head |= Wire.METADATA;
                MetadataFields.write(out, metadata);
            }
            int prelude = out.writerIndex();
            if (encoded == null) {
                parameters.write(arguments, out);
            } else {
                out.writeBytes(encoded, encoded.readerIndex(), encoded.readableBytes());
            }
            int bytes = out.writerIndex() - prelude;
            if (bytes > connection.maxBytesTaken()) {
                throw ClientCallErrors.largeRequest(bytes, connection.maxBytesTaken());
            }
            if (timeBytes == 0 && out.writerIndex() > Wire.MAX_PAYLOAD_BYTES - Varint.size(micros)) {
                // If the field TIME were added only when sending begins, the request could exceed one frame. Therefore
                // the field is added here, so that the charge and FrameScheduler count its bytes.
                head |= Wire.TIME;
                timeBytes = Varint.insert(out, timeAt, micros);
                metadataAt += timeBytes;
                prelude += timeBytes;
            }
            call.timeAt(timeAt, timeBytes);
            if (metadata.isComputed()) {
                call.metadataAt(metadata, metadataAt, prelude - metadataAt);
            }
            if (out.writerIndex() > Outbound.MAX_SMALL_BYTES) {
                call.holdRequest(HeapArray.heapBytes(out));
            }
            call.replyListener = metadata.replyListener();
            call.head = head;
            call.argumentsAt = prelude;
            call.argumentsEnd = out.writerIndex();
            if (items != null) {
                needStream(arguments);
                call.upload = upload(connection, call, items);
            }
        } catch (CodecException e) {
            throw ClientCallErrors.unusableArguments(e);
        } finally {
            // The user's accessors and suppliers of metadata have run, and might have set the interrupt flag of this
            // thread. The flag of an event loop is cleared, because the loop's next task belongs to another call.
            LoopThread.forgetInterrupt();
        }
    }

    private void needStream(@Nullable Object[] arguments) {
        if (arguments[0] == null) {
            throw RPCXException.refused(
                    RPCXException.Code.INVALID, method + ": the stream to send is null (expected: a publisher)");
        }
    }

    /** Encodes the arguments as they are now, for a call that is sent later. */
    ByteBuf encoded(Object[] arguments) {
        if (items != null) {
            needStream(arguments);
        }
        ByteBuf out = Unpooled.buffer();
        try {
            parameters.write(arguments, out);
        } catch (CodecException e) {
            throw ClientCallErrors.unusableArguments(e);
        } finally {
            // The user's accessors have run, and might have set the interrupt flag of this thread. If this thread is an
            // event loop, as for the second call of a hedge, the flag is cleared, because the loop's next task belongs
            // to another call.
            LoopThread.forgetInterrupt();
        }
        return out;
    }

    private static StreamSender upload(ClientConnection connection, ClientCall call, Codec<Object> items) {
        long serial = call.serial();
        return new StreamSender(
                connection,
                call.id,
                items,
                Wire.END,
                new StreamSender.Failed() {
                    @Override
                    public void onFailure(Throwable thrown) {
                        call.cancel(
                                serial,
                                RPCXException.Code.CANCELLED,
                                "the stream to send has failed: " + ThrowableText.words(thrown),
                                thrown);
                    }

                    @Override
                    public void tooLarge(RPCXException why) {
                        call.cancel(serial, why.code(), why.getMessage(), null);
                    }
                },
                () -> {},
                null);
    }

    /**
     * Subscribes to the stream that a call sends to the server. The items wait until the server gives credit.
     *
     * <p>Called only after the request has been queued or sent. The publisher can fail while this method runs, and its
     * failure ends the call.
     */
    @SuppressWarnings("unchecked") // the proxied method declares this type
    public static void subscribe(@Nullable StreamSender upload, Object[] arguments) {
        if (upload == null) {
            return;
        }
        upload.subscribeHere((Flow.Publisher<Object>) arguments[0]);
    }

    private static RPCXException late() {
        return RPCXException.refused(RPCXException.Code.DEADLINE_EXCEEDED, "no time left to send the call");
    }
}
