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

/**
 * Says which methods take or return streams. The receiver of a stream gives the sender credit, that is, permission to
 * send a number of items. This class also adds amounts of credit, and reads them from frames.
 */
public final class Streams {
    /**
     * The codec of the parameters of a method whose only parameter is a stream. The codec writes nothing, because the
     * items of a stream are sent separately.
     */
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
     * Returns the type of the items of the stream that the method takes. Returns null if the method takes no stream.
     *
     * @throws IllegalArgumentException if the method takes a stream together with other parameters; if the type of the
     *     stream's items is not declared; or if a one-way method takes or returns a stream
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

    /** Adds two amounts of credit. Returns the largest {@code long} if the sum does not fit a {@code long}. */
    public static long sum(long a, long b) {
        return Math.min(Long.MAX_VALUE - a, b) + a;
    }

    /**
     * Adds {@code items} to the credit that has not been sent to the peer yet. All unsent credit is sent in one frame,
     * because the peer could treat many frames as a flood. Any thread adds credit, and the event loop takes the sum,
     * each in one atomic step. So a thread that adds credit after the sum has been taken finds 0, and makes another
     * frame.
     *
     * @param unsent credit that has not been sent; the frame takes all of it
     * @return true if no credit was unsent before, so that the caller has to make the frame
     */
    public static boolean accumulateCredit(AtomicLong unsent, long items) {
        return unsent.getAndAccumulate(items, Streams::sum) == 0;
    }

    /**
     * Reads the number of items from the payload of a credit frame. Returns the largest {@code long} if the number does
     * not fit a {@code long}. Throws a {@link WireFault} if the number is 0.
     */
    public static long credit(ByteBuf payload) {
        long items = Varint.read(payload);
        if (items == 0) {
            throw new WireFault("credit 0 (expected: > 0)");
        }
        return items < 0 ? Long.MAX_VALUE : items;
    }
}
