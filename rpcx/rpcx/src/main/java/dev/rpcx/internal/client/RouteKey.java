package dev.rpcx.internal.client;

import dev.rpcx.RouteBy;
import dev.rpcx.codec.Codec;
import dev.rpcx.codec.Codecs;
import dev.rpcx.internal.schema.MessageType;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.lang.reflect.Method;
import java.lang.reflect.Type;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Computes a number from the argument that is annotated with {@link RouteBy}. With {@code Choice.CONSISTENT_HASH}, the
 * number selects the instance for the call; otherwise the number has no effect. Every process computes the same number,
 * unlike {@code hashCode()}, which can differ between processes for an enum or an array.
 */
final class RouteKey {
    /**
     * Types whose documentation specifies the value of {@code hashCode()}, so that every process gets the same value.
     */
    private static final Set<Class<?>> STABLE =
            Set.of(String.class, int.class, long.class, short.class, Integer.class, Long.class, Short.class);

    private final int parameter;

    /** Codec that encodes the argument, so that the bytes can be hashed; null if {@code hashCode()} is used instead. */
    private final @Nullable Codec<Object> codec;

    private RouteKey(int parameter, @Nullable Codec<Object> codec) {
        this.parameter = parameter;
        this.codec = codec;
    }

    /**
     * Creates the object that computes the numbers for the calls of a method.
     *
     * @return null if no parameter of the method is annotated with {@link RouteBy}
     */
    static @Nullable RouteKey of(Method method, Codecs codecs) {
        int found = -1;
        for (int i = 0; i < method.getParameterCount(); i++) {
            if (method.getParameters()[i].isAnnotationPresent(RouteBy.class)) {
                if (found >= 0) {
                    throw new IllegalArgumentException(method + ": @RouteBy twice (expected: once)");
                }
                found = i;
            }
        }
        if (found < 0) {
            return null;
        }
        if (STABLE.contains(method.getParameterTypes()[found])) {
            return new RouteKey(found, null);
        }
        Type type = method.getGenericParameterTypes()[found];
        if (MessageType.mayHaveNoOrder(codecs.schema().value(type, method))) {
            throw new IllegalArgumentException(
                    method + ": @RouteBy on a type with a Set, a Map or a Collection in it, whose order may differ from"
                            + " process to process (expected: a type without, such as a List)");
        }
        return new RouteKey(found, codecs.value(type, method));
    }

    /**
     * Returns the number that selects the instance for a call with these arguments. The number is never 0, since 0
     * stands for a method without {@link RouteBy}.
     */
    int of(Object[] arguments) {
        Object argument = arguments[parameter];
        int hash = argument == null ? 0 : codec == null ? argument.hashCode() : hash(codec, argument);
        return hash == 0 ? 1 : hash;
    }

    /** Returns the FNV-1a hash of the bytes into which the codec encodes the argument. */
    private static int hash(Codec<Object> codec, Object argument) {
        ByteBuf bytes = Unpooled.buffer();
        codec.write(argument, bytes);
        int hash = 0x811C9DC5;
        while (bytes.isReadable()) {
            hash = (hash ^ bytes.readUnsignedByte()) * 0x01000193;
        }
        return hash;
    }
}
