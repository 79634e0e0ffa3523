package dev.rpcx.codec;

import dev.rpcx.internal.schema.EnumType;
import dev.rpcx.internal.schema.FieldType;
import dev.rpcx.internal.schema.LockFile;
import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.NumberSource;
import dev.rpcx.internal.schema.Schema;
import dev.rpcx.internal.schema.Shape;
import dev.rpcx.schema.SchemaException;
import io.netty.buffer.ByteBuf;
import java.lang.ref.SoftReference;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.lang.reflect.Parameter;
import java.lang.reflect.Type;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * Creates and caches codecs for the methods of services, and for types. All methods are thread-safe. {@link Schema}
 * describes how Java types become messages.
 */
public final class Codecs {
    /**
     * Names of the types about which this process has logged a warning. The warning says that the Protobuf numbers of
     * the type's members depend on the order of declaration. Any thread that creates codecs adds names. If several
     * threads add the same name, only the first one logs the warning.
     */
    private static final Set<String> WARNED = ConcurrentHashMap.newKeySet();

    /**
     * The codecs with the default limits, by class loader. Soft references keep these codecs until memory is short, so
     * that an application that creates a client for each call does not create new codecs for each call. Any thread uses
     * the map, under the lock of the map itself.
     */
    private static final Map<@Nullable ClassLoader, SoftReference<Codecs>> DEFAULTS = new WeakHashMap<>();

    private final Schema schema;
    private final Limits limits;
    private final boolean generated;

    /** The codecs that have been created, by message type. Guarded by {@code this}. */
    private final Map<MessageType, MessageCodec> codecs = new HashMap<>();

    /**
     * All codecs of messages. The index of a codec in this array is its {@link MessageCodec#number}. A thread that
     * creates codecs replaces the array under the lock of {@code this}, before any thread gets these codecs. Threads
     * that write or read messages use the array without the lock. If the array were replaced later, such a thread could
     * have a number that is not in the array yet.
     */
    private volatile MessageCodec[] numbered = {};

    // Any thread reads the next five maps, and adds the codecs that it is the first to ask for.
    private final Map<Method, Codec<Object[]>> parameters = new ConcurrentHashMap<>();
    private final Map<Method, Codec<Object>> results = new ConcurrentHashMap<>();
    private final Map<Type, Codec<Object>> values = new ConcurrentHashMap<>();
    private final Map<Parameter, Codec<Object>> single = new ConcurrentHashMap<>();
    private final Map<Constructor<?>, Codec<Object[]>> errors = new ConcurrentHashMap<>();

    private Codecs(Schema schema, Limits limits, boolean generated) {
        this.schema = schema;
        this.limits = limits;
        this.generated = generated;
    }

    /**
     * Returns the codecs with the default limits, {@link Limits#STANDARD}. All services of one class loader share these
     * codecs. Fields without {@code @Field} get their Protobuf numbers from the lock files that the class loader finds,
     * or else from the order of declaration. Unused codecs can be dropped when memory is short.
     */
    public static Codecs standard(Class<?> service) {
        ClassLoader loader = service.getClassLoader();
        synchronized (DEFAULTS) {
            SoftReference<Codecs> held = DEFAULTS.get(loader);
            Codecs codecs = held == null ? null : held.get();
            if (codecs == null) {
                codecs = of(new Schema(LockFile.of(loader)), Limits.STANDARD);
                DEFAULTS.put(loader, new SoftReference<>(codecs));
            }
            return codecs;
        }
    }

    /**
     * Creates codecs for the messages of a schema. Each record or class gets a generated codec class. If no such class
     * can be generated for a type, the codec of that type uses reflection.
     */
    public static Codecs of(Schema schema, Limits limits) {
        return new Codecs(schema, limits, true);
    }

    /**
     * Creates codecs that use reflection instead of generated classes. These codecs are slower, but write and read the
     * same bytes.
     */
    public static Codecs reflective(Schema schema, Limits limits) {
        return new Codecs(schema, limits, false);
    }

    /**
     * Returns the codec of a method's parameters. The array that this codec writes or reads contains the parameters in
     * the order of their declaration.
     *
     * @throws SchemaException if the type of a parameter cannot be mapped to Protobuf, or if the number of a parameter
     *     is not allowed, is taken, or is missing while other parameters have one
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
     * Returns the codec of a method's result. For a {@code CompletionStage} this is the codec of the value with which
     * the stage completes, and for a {@code Flow.Publisher} the codec of one item. For {@code void} the codec writes
     * null as an empty message, and reads an empty message as null.
     *
     * @throws SchemaException if the type of the result cannot be mapped to Protobuf
     */
    public Codec<Object> result(Method method) {
        return results.computeIfAbsent(method, found -> new Top<>(codec(schema.result(found))));
    }

    /**
     * Returns the codec of one value of a type.
     *
     * @throws SchemaException if the type cannot be mapped to Protobuf
     */
    public Codec<Object> value(Type type) {
        return values.computeIfAbsent(type, found -> new Top<>(codec(schema.value(found))));
    }

    /**
     * Returns the codec of one value that a method takes. The value is either a parameter or an item of the stream that
     * is a parameter.
     *
     * @throws SchemaException if the type cannot be mapped to Protobuf; the exception's text names the method, or the
     *     component of the message that cannot be mapped
     */
    public Codec<Object> value(Type type, Method of) {
        return values.computeIfAbsent(type, found -> new Top<>(codec(schema.value(found, of))));
    }

    /**
     * Returns the codec of a single parameter in the form in which the classic wire sends it. The codec accepts null if
     * the declaration of the parameter does. There is one exception: if the method has several parameters, the codec of
     * a parameter that is a message refuses null.
     *
     * @throws SchemaException if the type cannot be mapped to Protobuf; the exception's text names the method, or the
     *     component of the message that cannot be mapped
     */
    public Codec<Object> value(Parameter parameter) {
        return single.computeIfAbsent(parameter, found -> new Top<>(codec(schema.value(found))));
    }

    /**
     * Returns the codec of the state of an exception, which is what the exception's constructor takes. The array that
     * this codec writes or reads contains the arguments of the constructor in the order of its parameters.
     *
     * @throws SchemaException if the type of a parameter cannot be mapped to Protobuf, or if the number of a parameter
     *     is not allowed, is taken, or is missing while other parameters have one
     */
    public Codec<Object[]> error(Constructor<?> constructor) {
        return errors.computeIfAbsent(constructor, found -> new Top<>(codec(schema.error(found))));
    }

    /** Returns the schema of the messages that these codecs read and write. */
    public Schema schema() {
        return schema;
    }

    /**
     * Returns whether the codec of a type is a generated class. The type has to be a record or a class with accessors.
     */
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
            case RECORD, BEAN, CONSTRUCTED -> object(type, fields);
            case ONEOF -> new OneofCodec(type, fields);
            case WRAPPER, PARAMETERS -> new TupleCodec(type, fields);
        };
        link.codec = codec;
        return codec;
    }

    private static void warn(NumberSource source, String type) {
        if (source == NumberSource.ORDER && WARNED.add(type)) {
            // the logger is created only here, since creating it delays the start of a server by tens of milliseconds
            System.getLogger(Codecs.class.getName())
                    .log(
                            System.Logger.Level.WARNING,
                            type
                                    + ": without @Field and lock, its numbers depend on the order of declaration;"
                                    + " give each member a @Field or run `rpcx lock`");
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

    /** The codec of an outermost message, that is, of a message that is not nested in another one. */
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
        @SuppressWarnings({"unchecked", "NullAway"}) // the value is null only where the declared type allows null
        public T read(ByteBuf in) {
            return (T) value(In.read(Codecs.this, codec, in, null));
        }

        @Override
        @SuppressWarnings({"unchecked", "NullAway"}) // the value is null only where the declared type allows null
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
                        + " is null (expected: a value; Optional or an annotation @Nullable on the parameter or result"
                        + " allows null)");
    }

    /**
     * The codec of the parameters of a method whose only parameter is a message that cannot be null. The parameter is
     * written as the outermost message, instead of as a field of another message.
     */
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
