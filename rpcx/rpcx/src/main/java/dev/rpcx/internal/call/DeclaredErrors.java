package dev.rpcx.internal.call;

import dev.rpcx.RPCXError;
import dev.rpcx.RPCXException;
import dev.rpcx.codec.Codec;
import dev.rpcx.codec.Codecs;
import dev.rpcx.internal.ThrowableText;
import dev.rpcx.internal.schema.ErrorType;
import dev.rpcx.schema.SchemaException;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.lang.reflect.Constructor;
import java.lang.reflect.InaccessibleObjectException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The exceptions with {@link RPCXError} that a method declares. A server sends such an exception as a detail of an
 * error, and a client makes it again. A name that a peer sends is only compared with the names of these exceptions, so
 * no peer chooses a class. Immutable.
 */
public final class DeclaredErrors {
    /** Stands for a method that declares no such exception. */
    public static final DeclaredErrors NONE = new DeclaredErrors(List.of());

    private final List<Declared> all;

    private DeclaredErrors(List<Declared> all) {
        this.all = all;
    }

    /**
     * Finds the exceptions with {@link RPCXError} among those that a method declares.
     *
     * @param where name of the method, for the texts of errors
     * @throws IllegalArgumentException if such an exception cannot be sent, or if two of them have the same name
     */
    public static DeclaredErrors of(String where, Collection<Class<?>> declared, Codecs codecs) {
        Map<String, Declared> named = new LinkedHashMap<>();
        for (Class<?> type : declared) {
            RPCXError marked = type.getAnnotation(RPCXError.class);
            if (marked == null) {
                continue;
            }
            String name = Names.checked(marked.value().isEmpty() ? type.getSimpleName() : marked.value());
            Declared made = new Declared(name, opened(ErrorType.of(type)), codecs);
            Declared other = named.putIfAbsent(name, made);
            if (other != null && other.thrown() != type) {
                throw new SchemaException(
                        ErrorType.namesakes(where, other.thrown().getName(), type.getName(), name));
            }
        }
        return named.isEmpty() ? NONE : new DeclaredErrors(List.copyOf(named.values()));
    }

    /**
     * Throws a {@link SchemaException} if a method of a client's interface declares a checked exception that never
     * comes from a server. Exceptions of the JDK are allowed, because an interceptor of the client may throw them.
     */
    public static void refuseUnmarked(String where, Method method) {
        for (Class<?> type : method.getExceptionTypes()) {
            boolean isChecked = !RuntimeException.class.isAssignableFrom(type) && !Error.class.isAssignableFrom(type);
            if (isChecked && !type.isAnnotationPresent(RPCXError.class) && !ErrorType.isOfJdk(type.getName())) {
                throw new SchemaException(ErrorType.unmarked(where, type.getName()));
            }
        }
    }

    private static ErrorType opened(ErrorType type) {
        try {
            type.constructor().setAccessible(true);
            type.accessors().forEach(accessor -> accessor.setAccessible(true));
            return type;
        } catch (InaccessibleObjectException e) {
            throw new IllegalArgumentException(
                    type.constructor().getDeclaringClass().getName()
                            + ": not accessible (expected: its package open to dev.rpcx)",
                    e);
        }
    }

    /**
     * Returns the detail of an error in which an exception is sent. Returns null if the exception is not declared, or
     * if its state cannot be sent: see {@link #whyUnsendable}.
     */
    public RPCXException.@Nullable Detail detailOf(Throwable thrown) {
        Declared declared = declared(thrown);
        if (declared == null) {
            return null;
        }
        try {
            return declared.write(thrown);
        } catch (Throwable unsendable) {
            // an Error is caught too, since the accessors and the types of the state are code of the user
            return null;
        }
    }

    /** Returns why an exception is not sent as itself although it is declared; null if it is sent or not declared. */
    public @Nullable String whyUnsendable(Throwable thrown) {
        Declared declared = declared(thrown);
        if (declared == null) {
            return null;
        }
        try {
            declared.write(thrown);
            return null;
        } catch (InvocationTargetException e) {
            return ThrowableText.words(e.getCause() == null ? e : e.getCause());
        } catch (Throwable unsendable) {
            return ThrowableText.words(unsendable);
        }
    }

    private @Nullable Declared declared(Throwable thrown) {
        for (Declared each : all) {
            if (each.thrown() == thrown.getClass()) {
                return each;
            }
        }
        return null;
    }

    /**
     * Returns what the caller of a call gets that has ended with {@code error}. This is a new exception of a class that
     * the method declares, if {@code error} has the state of such an exception, and otherwise {@code error} itself. If
     * the state cannot be read, the result is an {@link RPCXException} whose cause says why.
     */
    public Throwable thrown(RPCXException error) {
        for (RPCXException.Detail detail : error.details()) {
            for (Declared each : all) {
                if (detail.isDeclared() && each.name.equals(detail.name())) {
                    return each.read(detail.message(), error);
                }
            }
        }
        return error;
    }

    /** One of the exceptions. */
    private static final class Declared {
        private final String name;
        private final ErrorType type;
        private final Codec<Object[]> state;

        Declared(String name, ErrorType type, Codecs codecs) {
            this.name = name;
            this.type = type;
            this.state = codecs.error(type.constructor());
        }

        Class<?> thrown() {
            return type.constructor().getDeclaringClass();
        }

        RPCXException.Detail write(Throwable thrown) throws ReflectiveOperationException {
            Object[] values = new Object[type.accessors().size()];
            for (int i = 0; i < values.length; i++) {
                values[i] = type.accessors().get(i).invoke(thrown);
            }
            ByteBuf out = Unpooled.buffer();
            state.write(values, out);
            int bytes = ByteBufUtil.utf8Bytes(name) + out.readableBytes();
            if (bytes > RPCXException.MAX_DETAIL_BYTES) {
                throw new IllegalArgumentException(name + ": " + bytes + " bytes (expected: at most "
                        + RPCXException.MAX_DETAIL_BYTES + ", with its name)");
            }
            return new RPCXException.Detail(name, ByteBufUtil.getBytes(out), true);
        }

        Throwable read(byte[] message, RPCXException error) {
            Throwable why;
            try {
                Constructor<?> constructor = type.constructor();
                return (Throwable) constructor.newInstance(state.read(Unpooled.wrappedBuffer(message)));
            } catch (InvocationTargetException e) {
                why = e.getCause() == null ? e : e.getCause();
            } catch (Throwable e) {
                // an Error is caught too: whatever a constructor throws, the caller learns how its call has ended
                why = e;
            }
            return new RPCXException(error.code(), error.getMessage(), error.executed(), why)
                    .withDetails(error.details())
                    .withMetadata(error.metadata());
        }
    }
}
