package dev.rpcx.codec;

import dev.rpcx.schema.EnumType;
import dev.rpcx.schema.FieldType;
import dev.rpcx.schema.Lock;
import dev.rpcx.schema.MessageType;
import dev.rpcx.schema.NumberSource;
import dev.rpcx.schema.Schema;
import dev.rpcx.schema.SchemaException;
import dev.rpcx.schema.Shape;
import io.netty.buffer.ByteBuf;
import java.lang.ref.SoftReference;
import java.lang.reflect.Method;
import java.lang.reflect.Parameter;
import java.lang.reflect.Type;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * Makes codecs, at start: one a method or type, however often it is asked. Thread-safe. How Java types become messages:
 * {@link Schema}.
 */
public final class Codecs {
    /** One word a type is enough, however many clients and servers a process has. */
    private static final Set<String> TOLD = ConcurrentHashMap.newKeySet();

    /** Codecs of each class loader. Softly held: a client for each call must not make them for each call. */
    private static final Map<@Nullable ClassLoader, SoftReference<Codecs>> STANDARD = new WeakHashMap<>();

    private final Schema schema;
    private final Limits limits;
    private final boolean generated;
    private final Map<MessageType, MessageCodec> codecs = new HashMap<>();

    /** All of them by {@link MessageCodec#number}. */
    private volatile MessageCodec[] numbered = {};

    private final Map<Method, Codec<Object[]>> parameters = new ConcurrentHashMap<>();
    private final Map<Method, Codec<Object>> results = new ConcurrentHashMap<>();
    private final Map<Type, Codec<Object>> values = new ConcurrentHashMap<>();
    private final Map<Parameter, Codec<Object>> single = new ConcurrentHashMap<>();

    private Codecs(Schema schema, Limits limits, boolean generated) {
        this.schema = schema;
        this.limits = limits;
        this.generated = generated;
    }

    /**
     * Codecs with the lock files that the class loader of this service or client interface finds, and
     * {@link Limits#STANDARD}. The thread that asks does not matter: the numbers of fields belong to the types. The
     * same codecs for all that ask, until nobody uses them and memory is short.
     */
    public static Codecs standard(Class<?> service) {
        ClassLoader loader = service.getClassLoader();
        synchronized (STANDARD) {
            SoftReference<Codecs> held = STANDARD.get(loader);
            Codecs codecs = held == null ? null : held.get();
            if (codecs == null) {
                codecs = of(new Schema(Lock.of(loader)), Limits.STANDARD);
                STANDARD.put(loader, new SoftReference<>(codecs));
            }
            return codecs;
        }
    }

    /** Codecs that are generated where a type can be reached, and reflective where not. */
    public static Codecs of(Schema schema, Limits limits) {
        return new Codecs(schema, limits, true);
    }

    /** Codecs without generated classes: slower, the same bytes. */
    public static Codecs reflective(Schema schema, Limits limits) {
        return new Codecs(schema, limits, false);
    }

    /**
     * Codec of a method's parameters, in their order.
     *
     * @throws SchemaException a parameter's type cannot be mapped
     */
    public Codec<Object[]> parameters(Method method) {
        return parameters.computeIfAbsent(method, this::ofParameters);
    }

    private Codec<Object[]> ofParameters(Method method) {
        MessageType type = schema.parameters(method);
        MessageCodec codec = codec(type);
        return type.kind() == MessageType.Kind.PARAMETERS ? new Top<>(codec) : new OnlyParameter(codec);
    }

    /**
     * Codec of a method's result, of what its {@code CompletionStage} completes with, or of one item of the
     * {@code Flow.Publisher}; for {@code void} an empty message, written from and read as null.
     *
     * @throws SchemaException the type cannot be mapped
     */
    public Codec<Object> result(Method method) {
        return results.computeIfAbsent(method, found -> new Top<>(codec(schema.result(found))));
    }

    /**
     * Codec of one value.
     *
     * @throws SchemaException the type cannot be mapped
     */
    public Codec<Object> value(Type type) {
        return values.computeIfAbsent(type, found -> new Top<>(codec(schema.value(found))));
    }

    /**
     * Codec of one value of a method: a parameter by itself, or an item of the stream that it takes.
     *
     * @throws SchemaException the type cannot be mapped; its text names the method
     */
    public Codec<Object> value(Type type, Method of) {
        return values.computeIfAbsent(type, found -> new Top<>(codec(schema.value(found, of))));
    }

    /**
     * Codec of a parameter by itself, as the classic wire carries it. It takes null where its declaration says so, but
     * for a message among other parameters.
     *
     * @throws SchemaException the type cannot be mapped; its text names the method
     */
    public Codec<Object> value(Parameter parameter) {
        return single.computeIfAbsent(parameter, found -> new Top<>(codec(schema.value(found))));
    }

    /** Hash that is equal where parameters and result have the same bytes: numbers and wire forms, no names. */
    public long schemaHash(Method method) {
        return SchemaHash.of(List.of(schema.parameters(method), schema.result(method)));
    }

    /** The messages that these codecs read and write. */
    public Schema schema() {
        return schema;
    }

    /** Whether a class was generated for this type. */
    boolean isGenerated(Type javaType) {
        return !(codec(schema.value(javaType)) instanceof ReflectiveCodec);
    }

    private synchronized MessageCodec codec(MessageType type) {
        Map<MessageType, ElementCodec.MessageLink> links = new HashMap<>();
        MessageCodec codec = codec(type, links);
        Map<MessageType, MessageCodec> made = made(links);
        if (!made.isEmpty()) {
            number(made.values());
            codecs.putAll(made);
        }
        return codec;
    }

    private void number(Collection<MessageCodec> made) {
        int number = numbered.length;
        MessageCodec[] all = Arrays.copyOf(numbered, number + made.size());
        for (MessageCodec each : made) {
            each.number = number;
            all[number++] = each;
        }
        numbered = all;
    }

    MessageCodec numbered(int number) {
        return numbered[number];
    }

    Limits limits() {
        return limits;
    }

    private static Map<MessageType, MessageCodec> made(Map<MessageType, ElementCodec.MessageLink> links) {
        Map<MessageType, MessageCodec> made = new HashMap<>();
        links.forEach((type, link) -> made.put(type, link.codec()));
        return made;
    }

    private MessageCodec codec(MessageType type, Map<MessageType, ElementCodec.MessageLink> links) {
        MessageCodec known = codecs.get(type);
        if (known != null) {
            return known;
        }
        ElementCodec.MessageLink link = new ElementCodec.MessageLink();
        links.put(type, link);
        FieldCodec[] fields = new FieldCodec[type.fields().size()];
        for (int i = 0; i < fields.length; i++) {
            FieldType field = type.fields().get(i);
            Shape key = field.key();
            fields[i] = FieldCodec.of(field, element(field.shape(), links), key == null ? null : element(key, links));
        }
        warn(type.source(), type.javaName());
        MessageCodec codec = switch (type.kind()) {
            case RECORD, BEAN -> object(type, fields);
            case ONEOF -> new OneofCodec(type, fields);
            case WRAPPER, PARAMETERS -> new TupleCodec(type, fields);
        };
        link.codec = codec;
        return codec;
    }

    private static void warn(NumberSource source, String type) {
        if (source == NumberSource.ORDER && TOLD.add(type)) {
            // made where there is something to say: a logger takes a server tens of milliseconds at its start
            System.getLogger(Codecs.class.getName())
                    .log(
                            System.Logger.Level.WARNING,
                            type
                                    + ": numbers by the order of declaration, which one put in between would change;"
                                    + " give each a @Field or run `rpcx lock`");
        }
    }

    private MessageCodec object(MessageType type, FieldCodec[] fields) {
        MessageCodec codec = generated ? Generator.generate(type, fields) : null;
        return codec != null ? codec : new ReflectiveCodec(type, fields);
    }

    private ElementCodec element(Shape shape, Map<MessageType, ElementCodec.MessageLink> links) {
        ElementCodec.MessageLink link = new ElementCodec.MessageLink();
        if (shape instanceof MessageType message) {
            ElementCodec.MessageLink begun = links.get(message);
            if (begun != null) {
                link = begun;
            } else {
                link.codec = codec(message, links);
            }
        } else if (shape instanceof EnumType type) {
            warn(type.source(), type.javaClass().getName());
        }
        return ElementCodec.of(shape, link);
    }

    /** A message of its own. */
    private final class Top<T> implements Codec<T> {
        private final MessageCodec codec;

        Top(MessageCodec codec) {
            this.codec = codec;
        }

        @Override
        public void write(@Nullable T value, ByteBuf out) {
            if (value != null) {
                Out.write(Codecs.this, codec, value, out);
            } else if (codec instanceof TupleCodec) {
                Out.write(Codecs.this, codec, TupleCodec.NULL, out);
            } else {
                throw nullMessage(codec);
            }
        }

        @Override
        @SuppressWarnings({"unchecked", "NullAway"}) // null where the declared type allows it
        public T read(ByteBuf in) {
            return (T) value(In.read(Codecs.this, codec, in, null));
        }

        @Override
        @SuppressWarnings({"unchecked", "NullAway"}) // null where the declared type allows it
        public T read(ByteBuf in, Memory memory) {
            return (T) value(In.read(Codecs.this, codec, in, Objects.requireNonNull(memory)));
        }

        private static @Nullable Object value(Object read) {
            return read == TupleCodec.NULL ? null : read;
        }
    }

    private static CodecException nullMessage(MessageCodec codec) {
        return new CodecException(
                CodecException.Code.NULL_VALUE,
                codec.type().protoName()
                        + " is null, and is a whole message (expected: a value; Optional or an annotation @Nullable"
                        + " allows null)");
    }

    /** A single parameter that is the message. */
    private final class OnlyParameter implements Codec<Object[]> {
        private final MessageCodec codec;

        OnlyParameter(MessageCodec codec) {
            this.codec = codec;
        }

        @Override
        public void write(Object[] values, ByteBuf out) {
            if (values.length != 1) {
                throw new IllegalArgumentException(values.length + " arguments (expected: 1)");
            }
            if (values[0] == null) {
                throw nullMessage(codec);
            }
            Out.write(Codecs.this, codec, values[0], out);
        }

        @Override
        public Object[] read(ByteBuf in) {
            return new Object[] {In.read(Codecs.this, codec, in, null)};
        }

        @Override
        public Object[] read(ByteBuf in, Memory memory) {
            return new Object[] {In.read(Codecs.this, codec, in, Objects.requireNonNull(memory))};
        }
    }
}
