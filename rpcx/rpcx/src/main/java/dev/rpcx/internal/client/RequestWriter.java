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
 * Takes a slot for each attempt at a call of one method, and writes the request into it: the method's number or name,
 * the remaining time, the metadata, the arguments. It decides whether a request carries its time, and refuses a request
 * that is too large, comes too late or cannot be encoded. Only when a request has been written is it known whether a
 * connection takes it. So this class also decides which connection is asked next. It runs on the thread that makes the
 * attempt, which is a caller's thread or an event loop.
 */
public final class RequestWriter {
    private final ClientMethod method;

    /** Route that is asked for another connection when the chosen one does not take a request. */
    private final Route route;

    /** Type of the requests: {@link Wire#NOTICE} or {@link Wire#REQUEST}. */
    private final int type;

    private final byte[] serviceBytes;
    private final byte[] nameBytes;
    private final Codec<Object[]> parameters;

    /** Codec of the items of the stream that the method takes; null if it takes no stream. */
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
     * Takes a slot and writes the request into it, as {@link #prepare} does. If other calls have filled the connection
     * since it was chosen, this method chooses another one. Choosing a connection may take the trial of its instance,
     * which only one call can have. So this method chooses a connection only to send the call on it. The methods that
     * call this one must not choose a connection just to see whether there is one. If no connection can be chosen, the
     * call waits.
     *
     * @return null if no other connection is ready yet, and the call has to wait for one
     * @throws RPCXException if no connection takes the call, or all are full
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
     * Takes a slot of the given connection and writes the request into it. If the server of the connection takes no
     * such call, or no more calls, uses a connection of another instance. When this side refuses a call, nothing of the
     * call has been sent. So asking another instance costs no server anything, and takes nothing from the retry budget.
     * The returned slot belongs to the caller, which has no other way to get one.
     *
     * @param encoded arguments encoded when the call was made; null to encode them now
     * @param now time at which this thread began this attempt
     * @throws RPCXException if no connection takes the call; the error is the one with which the given connection has
     *     refused it
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
        List<ClientAddress> asked = new ArrayList<>(Attempts.MAX_ATTEMPTS);
        List<ClientAddress> unfit = new ArrayList<>(Attempts.MAX_ATTEMPTS);
        ClientConnection last = on;
        RPCXException refused = first;
        while (true) {
            asked.add(last.address());
            if (LocalFailure.is(LocalFailure.Why.UNFIT, refused)) {
                unfit.add(last.address());
            }
            ClientConnection next = asked.size() < Attempts.MAX_ATTEMPTS ? route.readyBeside(asked) : null;
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
     * Takes a slot of this connection, or of another one of the same instance, and writes the request into it.
     *
     * @param unfit instances that do not take the call. If the instance of {@code on} takes the call, a failure is
     *     counted for each of them. If no instance takes the call, the call itself is at fault.
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
            // The connection may have been found idle since it was chosen, and may be about to close. In that case the
            // call takes a slot of another connection of the instance, and its slot here is given back. If no other
            // connection is ready, this one takes the call after all.
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
                // A Throwable is caught, since the user's methods may throw what they do not declare. Otherwise nobody
                // would give the slot back.
                call.dropUnsent();
                isHeld = false;
                throw unsent;
            }
            isHeld = false;
        } finally {
            if (isHeld) {
                // There are only stores here: if the stack is exhausted, no method can be called.
                call.orphan = serial;
                used.slots.hasOrphans = true;
            }
        }
        return call;
    }

    /**
     * Takes a slot of a chosen connection. The choice may have taken the trial of the instance. If no slot is free,
     * that trial is given back, since no call is sent.
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
     * Writes the request into the slot: first the prelude, then the body.
     *
     * @param encoded arguments encoded when the call was made; null to encode them now
     * @param now time at which this thread began this attempt
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
            // A server gives a request that has no field TIME the full default time. So if the call has less time left,
            // the remaining time is written, rounded down so that it never grows on its way. What the call has spent
            // waiting is subtracted, and so is what the request spends waiting for the socket. What the request spends
            // waiting for the event loop is not subtracted. If the loop is held up, it sends the request with all of
            // the time that is written here, even if that time is over, since nobody looks at the clock then.
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
                throw LocalFailure.unfit(
                        RPCXException.Code.TOO_LARGE,
                        "a request of " + bytes + " bytes (expected: at most " + connection.maxBytesTaken() + ")");
            }
            if (timeBytes == 0 && out.writerIndex() > Wire.MAX_PAYLOAD_BYTES - Varint.size(micros)) {
                // The request may have to carry the field TIME when sending begins, and would then exceed one frame. So
                // TIME is inserted now, and the charge and FrameScheduler count its bytes.
                head |= Wire.TIME;
                timeBytes = Varint.insert(out, timeAt, micros);
                metadataAt += timeBytes;
                prelude += timeBytes;
            }
            call.timeAt(timeAt, timeBytes);
            if (metadata.isComputed()) {
                call.metadataAt(metadata, metadataAt, prelude - metadataAt);
            }
            if (out.writerIndex() > Outbound.SMALL_BYTES) {
                call.holdRequest(HeapArray.heapBytes(out));
            }
            call.head = head;
            call.argumentsAt = prelude;
            call.argumentsEnd = out.writerIndex();
            if (items != null) {
                needStream(arguments);
                call.upload = upload(connection, call, items);
            }
        } catch (CodecException e) {
            throw unusable(e);
        } finally {
            // The request of a further attempt is written by an event loop. The user's accessors and suppliers of
            // metadata may have set the loop's interrupt flag.
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
            throw unusable(e);
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
     * Subscribes to the stream that a call sends to the server. This happens after the request has been queued, so that
     * a publisher that fails immediately ends a call that exists. The items wait for the server's credit.
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

    static RPCXException unusable(CodecException e) {
        return new RPCXException(
                e.code() == CodecException.Code.TOO_LARGE ? RPCXException.Code.TOO_LARGE : RPCXException.Code.INVALID,
                e.getMessage() == null ? e.code().name() : e.getMessage(),
                RPCXException.Executed.NOT_EXECUTED,
                e);
    }
}
