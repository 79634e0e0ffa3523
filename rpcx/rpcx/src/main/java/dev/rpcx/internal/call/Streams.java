package dev.rpcx.internal.call;

import dev.rpcx.OneWay;
import dev.rpcx.codec.Codec;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.WireFault;
import io.netty.buffer.ByteBuf;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/** Says which methods take or return streams, and adds and reads the credit of streams. */
public final class Streams {
    /** Codec of the parameters of a method whose only parameter is a stream: an empty body. */
    public static final Codec<Object[]> NO_PARAMETERS = new Codec<>() {
        @Override
        public void write(Object[] value, ByteBuf out) {}

        @Override
        public Object[] read(ByteBuf in) {
            in.readerIndex(in.writerIndex());
            return new Object[0];
        }
    };

    private Streams() {}

    public static boolean returnsStream(Method method) {
        return method.getReturnType() == Flow.Publisher.class;
    }

    /**
     * Returns the type of the items of the stream that the method takes; null if it takes no stream.
     *
     * @throws IllegalArgumentException if the method takes a stream and other parameters, or a stream without the type
     *     of its items; or if it is one-way and takes or returns a stream
     */
    public static @Nullable Type itemsTaken(Method method) {
        Type taken = null;
        for (Type parameter : method.getGenericParameterTypes()) {
            if (parameter == Flow.Publisher.class) {
                throw new IllegalArgumentException(
                        method + ": a stream without the type of its items (expected: Flow.Publisher<Type>)");
            }
            if (parameter instanceof ParameterizedType type && type.getRawType() == Flow.Publisher.class) {
                taken = type.getActualTypeArguments()[0];
            }
        }
        if (taken != null && method.getParameterCount() > 1) {
            throw new IllegalArgumentException(
                    method + ": a stream beside other parameters (expected: the stream alone)");
        }
        if ((taken != null || returnsStream(method)) && method.isAnnotationPresent(OneWay.class)) {
            throw new IllegalArgumentException(method + ": a stream of a one-way method (expected: not one-way)");
        }
        return taken;
    }

    /** Adds two amounts of credit. A sum that does not fit a {@code long} becomes the largest {@code long}. */
    public static long sum(long a, long b) {
        return Math.min(Long.MAX_VALUE - a, b) + a;
    }

    /**
     * Adds credit to the credit that waits for a frame. One frame takes all of it, because the peer might take many
     * frames for a flood.
     *
     * @param unsent credit that waits; all of it is taken when the frame is sent
     * @return whether the caller has to make the frame: no credit waited before
     */
    public static boolean accumulateCredit(AtomicLong unsent, long items) {
        return unsent.getAndAccumulate(items, Streams::sum) == 0;
    }

    /**
     * Reads the credit of a frame, which has to be positive. A number that does not fit a {@code long} becomes the
     * largest {@code long}.
     */
    public static long credit(ByteBuf payload) {
        long items = Varint.read(payload);
        if (items == 0) {
            throw new WireFault("credit 0 (expected: > 0)");
        }
        return items < 0 ? Long.MAX_VALUE : items;
    }
}
