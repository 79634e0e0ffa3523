package dev.rpcx.internal.schema;

import dev.rpcx.internal.schema.FieldType.Holder;
import dev.rpcx.schema.Field;
import dev.rpcx.schema.SchemaException;
import dev.rpcx.schema.Unknown;
import java.lang.invoke.MethodType;
import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.AnnotatedParameterizedType;
import java.lang.reflect.Constructor;
import java.lang.reflect.Member;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Parameter;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.lang.reflect.TypeVariable;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.URI;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Date;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;

/**
 * Maps Java types to Protobuf messages, and keeps the result for each type. A type that cannot be mapped is refused
 * with a {@link SchemaException} that names the component. Thread-safe.
 *
 * <p>The rules are:
 *
 * <ul>
 *   <li>The parameters of a method become the fields of one message. Their numbers are their positions, counted from 1,
 *       unless {@link Field} annotations give other numbers. But if the only parameter is itself a message (a record, a
 *       class or a sealed type) and cannot be null, no other message is put around it.
 *   <li>A result that is itself a message and cannot be null is sent as that message. Any other result becomes field 1
 *       of a message. For {@code void}, the message has no fields.
 *   <li>A parameter that is a {@code Flow.Publisher} is a stream, and does not become a field.
 *   <li>Null is sent by sending nothing. So a value can be null where nothing stands for no other value: a message in a
 *       field, a date, time, duration, decimal, big integer, UUID or URI, and an enum without a constant of number 0.
 *   <li>For numbers, characters, booleans, strings, byte arrays, lists, sets, maps, enums with a constant of number 0,
 *       and a message that is a whole request or result, nothing stands for the default, such as 0 or the empty string.
 *       They cannot be null, unless they are boxed, {@code Optional} or annotated {@code Nullable}. If they can be
 *       null, the default is sent too.
 * </ul>
 *
 * <p>The numbers of a type's members come from {@link Field} annotations, or else from the lock file
 * ({@link LockFile}), or else from the order of declaration.
 *
 * <p>This class is longer than 400 lines because it maps all kinds of types. A type of one kind may contain types of
 * any other kind, so all kinds share one table of results.
 */
public final class Schema {
    private static final Map<Class<?>, Shape> SIMPLE = Map.ofEntries(
            Map.entry(boolean.class, Scalar.BOOL),
            Map.entry(byte.class, Scalar.BYTE),
            Map.entry(short.class, Scalar.SHORT),
            Map.entry(char.class, Scalar.CHAR),
            Map.entry(int.class, Scalar.INT),
            Map.entry(long.class, Scalar.LONG),
            Map.entry(float.class, Scalar.FLOAT),
            Map.entry(double.class, Scalar.DOUBLE),
            Map.entry(String.class, Scalar.STRING),
            Map.entry(byte[].class, Scalar.BYTES),
            Map.entry(BigInteger.class, Scalar.BIG_INTEGER),
            Map.entry(UUID.class, Scalar.UUID),
            Map.entry(URI.class, Scalar.URI),
            Map.entry(BigDecimal.class, WellKnown.DECIMAL),
            Map.entry(Instant.class, WellKnown.INSTANT),
            Map.entry(Date.class, WellKnown.DATE),
            Map.entry(Duration.class, WellKnown.DURATION),
            Map.entry(LocalDate.class, WellKnown.LOCAL_DATE),
            Map.entry(LocalDateTime.class, WellKnown.LOCAL_DATE_TIME),
            Map.entry(LocalTime.class, WellKnown.LOCAL_TIME),
            Map.entry(OffsetDateTime.class, WellKnown.OFFSET_DATE_TIME),
            Map.entry(ZonedDateTime.class, WellKnown.ZONED_DATE_TIME));

    private static final Map<Class<?>, Scalar> BOXES = Map.of(
            Boolean.class, Scalar.BOOL,
            Byte.class, Scalar.BYTE,
            Short.class, Scalar.SHORT,
            Character.class, Scalar.CHAR,
            Integer.class, Scalar.INT,
            Long.class, Scalar.LONG,
            Float.class, Scalar.FLOAT,
            Double.class, Scalar.DOUBLE);

    /**
     * Names of the types of an asynchronous result, such as {@code CompletableFuture}. They are names and not classes,
     * since this package must not refer to {@code RPCXFuture}.
     */
    private static final Set<String> STAGES =
            Set.of(CompletionStage.class.getName(), CompletableFuture.class.getName(), "dev.rpcx.RPCXFuture");

    private final LockFile lock;
    private final boolean extending;
    private final Map<Use, Shape> shapes = new HashMap<>();

    /**
     * Messages of the states of exceptions. They are not among {@link #shapes}, since an exception is never the value
     * of a field.
     */
    private final Map<Class<?>, MessageType> errors = new HashMap<>();

    /** What the files of classes say of null. A class is in this map once its file has been read. */
    private final Map<Class<?>, FileNullables> files = new HashMap<>();

    /**
     * Types whose messages have been added to {@link #shapes} since the mapping of the outermost type began, in the
     * order in which they were added. If the mapping of a type fails, {@code shapes} loses this type and all types
     * behind it in this list. Enums are not in this list, so they stay in {@code shapes}.
     */
    private final List<Use> unfinished = new ArrayList<>();

    /**
     * Creates a schema that takes numbers from this lock file. A component of a Java type is refused if the type has no
     * {@link Field} annotations, and the lock file has the type but not the component.
     */
    public Schema(LockFile lock) {
        this(lock, false);
    }

    private Schema(LockFile lock, boolean extending) {
        this.lock = lock;
        this.extending = extending;
    }

    /**
     * Creates a schema from which the next version of this lock file is written. A component that the lock file lacks
     * gets the next free number.
     */
    public static Schema extending(LockFile lock) {
        return new Schema(lock, true);
    }

    /** Returns the content of the lock file from which types without {@link Field} annotations get their numbers. */
    LockFile lock() {
        return lock;
    }

    /**
     * Returns the messages and enums of all types that have been mapped so far. Messages that RPCX itself makes to hold
     * a nested or nullable list, set or map are included, and so are the states of exceptions. Messages that RPCX makes
     * for the parameters, the result or a single value of one method are left out.
     */
    public synchronized List<Shape> shapes() {
        List<Shape> all = new ArrayList<>(shapes.values());
        all.addAll(errors.values());
        return List.copyOf(all);
    }

    /**
     * Returns the message in which the arguments of this method are sent.
     *
     * @throws SchemaException if a parameter cannot be mapped, or if the number of a parameter is not allowed, is
     *     taken, or is missing while other parameters have one
     */
    public synchronized MessageType parameters(Method method) {
        Parameter[] parameters = method.getParameters();
        String where = where(method);
        for (Parameter parameter : parameters) {
            Field field = parameter.getAnnotation(Field.class);
            if (field != null && !isStream(parameter)) {
                FieldType.checkNumber(parameter.getName(), field.value());
            }
        }
        if (parameters.length == 1 && !isStream(parameters[0])) {
            Use use = Use.of(parameters[0].getParameterizedType(), Map.of(), where);
            if (isMessage(use.raw())
                    && !nullable(use.raw(), parameters[0], parameters[0].getAnnotatedType())
                    && shape(use, where) instanceof MessageType message) {
                return message;
            }
        }
        List<FieldType> fields = new ArrayList<>();
        List<Integer> positions = new ArrayList<>();
        Numbers numbers = new Numbers(where, null, NumberSource.FIXED, List.of(parameters), extending);
        for (int i = 0; i < parameters.length; i++) {
            Parameter parameter = parameters[i];
            if (isStream(parameter)) {
                continue;
            }
            positions.add(i);
            String name = parameter.getName();
            Use use = Use.of(parameter.getParameterizedType(), Map.of(), where);
            int number = numbers.of(parameter, name, i + 1);
            boolean nullable = nullable(use.raw(), parameter, parameter.getAnnotatedType());
            fields.add(field(name, number, use, nullable, where + "(" + name + ")"));
        }
        return new MessageType(
                        capital(method.getName()) + "Request", MessageType.Kind.PARAMETERS, Object[].class, where)
                .fields(fields, numbers.source())
                .parameters(parameters.length, positions);
    }

    /**
     * Says whether a parameter is a stream, that is, a {@code Flow.Publisher}. A parameter whose type is a type
     * variable is no stream, since the type of its items is not known.
     */
    private static boolean isStream(Parameter parameter) {
        return parameter.getType() == Flow.Publisher.class
                && !(parameter.getParameterizedType() instanceof TypeVariable<?>);
    }

    /**
     * Returns the message in which a result of {@code method} is sent. For a {@link CompletionStage}, it is the message
     * of the value that the stage delivers. For a stream, it is the message of one item.
     *
     * @throws SchemaException if the type cannot be mapped. {@code CompletionStage}, {@code CompletableFuture} and
     *     {@code RPCXFuture} are the only futures and stages that can be mapped
     */
    public synchronized MessageType result(Method method) {
        String where = "result of " + where(method);
        Use use = Use.of(method.getGenericReturnType(), Map.of(), where);
        boolean isStage = CompletionStage.class.isAssignableFrom(use.raw());
        if (Future.class.isAssignableFrom(use.raw()) && !isStage) {
            throw new SchemaException(where + ": " + use + " is a future without a callback at its end (expected:"
                    + " CompletionStage, CompletableFuture or RPCXFuture)");
        }
        if (isStage && !STAGES.contains(use.raw().getName())) {
            throw new SchemaException(
                    where + ": " + use + " (expected: CompletionStage, CompletableFuture or RPCXFuture)");
        }
        boolean isStream = use.raw() == Flow.Publisher.class;
        Use content = isStream || isStage ? use.args().get(0) : use;
        boolean nullable = nullable(use.raw(), method, method.getAnnotatedReturnType());
        if (isStream || isStage) {
            nullable |= method.getAnnotatedReturnType() instanceof AnnotatedParameterizedType of
                            && nullable(content.raw(), of.getAnnotatedActualTypeArguments()[0])
                    || file(method.getDeclaringClass()).isOnContent(method);
            use = nullable ? content : unboxed(content);
        }
        if (isStream) {
            refuseVoid(use, where);
        }
        return message(use, nullable, capital(method.getName()) + "Reply", where);
    }

    /** Returns the message in which one value of this type is sent. */
    public synchronized MessageType value(Type type) {
        return value(type, type.getTypeName());
    }

    /**
     * Returns the message in which one value of this type is sent. The value is a parameter of a method, or one item of
     * a stream that the method takes.
     *
     * @param of the method, named in errors
     * @throws SchemaException if the type cannot be mapped
     */
    public synchronized MessageType value(Type type, Method of) {
        return value(type, where(of));
    }

    /**
     * Returns the message that carries the value of this parameter and of no other, as on the classic wire. The value
     * can be null if the declaration allows null. There is one exception: if the method has several parameters, and the
     * type of this one is itself a message, the value cannot be null.
     *
     * <p>The reason for the exception: the value is sent as the message that it is. To allow null, RPCX would have to
     * put another message around the value. If only a later version of the declaration allowed null, the bytes would
     * change with that version, and no lock file would report the change.
     *
     * @throws SchemaException if the type cannot be mapped; the text names the method or the component
     */
    public synchronized MessageType value(Parameter parameter) {
        String where = where((Method) parameter.getDeclaringExecutable());
        Use use = Use.of(parameter.getParameterizedType(), Map.of(), where);
        refuseVoid(use, where);
        boolean isAlone = parameter.getDeclaringExecutable().getParameterCount() == 1;
        boolean nullable =
                (isAlone || !isMessage(use.raw())) && nullable(use.raw(), parameter, parameter.getAnnotatedType());
        return message(use, nullable, use.simpleName() + "Value", where);
    }

    /**
     * Returns the message in which the state of an exception is sent. The message has a field for each parameter of the
     * exception's constructor. The parameter {@code String message} can be null, since an exception need not have a
     * message.
     *
     * @throws SchemaException if a parameter cannot be mapped, or if its number is not allowed, is taken, or is missing
     *     while other parameters have one
     */
    public synchronized MessageType error(Constructor<?> constructor) {
        Class<?> raw = constructor.getDeclaringClass();
        MessageType known = errors.get(raw);
        if (known != null) {
            return known;
        }
        Use use = Use.of(raw, Map.of(), raw.getName());
        Parameter[] parameters = constructor.getParameters();
        Numbers numbers =
                new Numbers(raw.getName(), lock.entry(use), NumberSource.ORDER, List.of(parameters), extending);
        List<FieldType> fields = new ArrayList<>();
        List<Integer> positions = new ArrayList<>();
        for (int i = 0; i < parameters.length; i++) {
            Parameter parameter = parameters[i];
            String name = parameter.getName();
            String where = raw.getName() + "." + name;
            Use type = Use.of(parameter.getParameterizedType(), Map.of(), where);
            boolean nullable = name.equals("message") && type.raw() == String.class
                    || nullable(type.raw(), parameter, parameter.getAnnotatedType());
            fields.add(field(name, numbers.of(parameter, name, i + 1), type, nullable, where));
            positions.add(i);
        }
        MessageType message = new MessageType(use.simpleName(), MessageType.Kind.PARAMETERS, raw, use.key())
                .fields(fields, numbers.source())
                .parameters(parameters.length, positions)
                .reserved(numbers.reserved());
        errors.put(raw, message);
        return message;
    }

    private MessageType value(Type type, String where) {
        Use use = unboxed(Use.of(type, Map.of(), where));
        refuseVoid(use, where);
        return message(use, false, use.simpleName() + "Value", where);
    }

    /**
     * Throws an exception if the type is {@code void} or {@code Void}. This method is called where a value is needed,
     * for example for an item of a stream.
     */
    private static void refuseVoid(Use use, String where) {
        if (use.raw() == void.class || use.raw() == Void.class) {
            throw new SchemaException(where + ": " + use + " cannot be mapped to Protobuf: it has no value but null");
        }
    }

    private static String where(Method method) {
        return method.getDeclaringClass().getName() + "." + method.getName();
    }

    /**
     * Returns the primitive type for a boxed type, and any other type unchanged. So one side can declare a result as
     * {@code CompletableFuture<Integer>}, and the other side as {@code int}.
     */
    private static Use unboxed(Use use) {
        Class<?> raw = MethodType.methodType(use.raw()).unwrap().returnType();
        return raw == use.raw() || raw == void.class ? use : Use.of(raw, Map.of(), raw.getName());
    }

    private MessageType message(Use use, boolean nullable, String wrapperName, String where) {
        if (use.raw() == void.class || use.raw() == Void.class) {
            return new MessageType(wrapperName, MessageType.Kind.WRAPPER, Void.class, where);
        }
        if (!nullable && isMessage(use.raw()) && shape(use, where) instanceof MessageType message) {
            return message;
        }
        return new MessageType(wrapperName, MessageType.Kind.WRAPPER, use.raw(), where)
                .fields(List.of(field("value", 1, use, nullable, where)), NumberSource.FIXED);
    }

    private static boolean isMessage(Class<?> raw) {
        return !SIMPLE.containsKey(raw)
                && !BOXES.containsKey(raw)
                && !raw.isEnum()
                && raw != Optional.class
                && !isContainer(raw);
    }

    private static boolean isContainer(Class<?> raw) {
        return raw == List.class || raw == Collection.class || raw == Set.class || raw == Map.class;
    }

    private FieldType field(String name, int number, Use use, boolean nullable, String where) {
        Class<?> raw = use.raw();
        Scalar box = BOXES.get(raw);
        if (box != null) {
            return new FieldType(name, number, Holder.NULLABLE, box, null, raw);
        }
        if (raw == Optional.class) {
            return new FieldType(name, number, Holder.OPTIONAL, element(use.only(where), where), null, raw);
        }
        if (isContainer(raw) && nullable) {
            return new FieldType(name, number, Holder.PLAIN, wrapper(use, where), null, raw);
        }
        if (raw == List.class || raw == Collection.class) {
            return new FieldType(name, number, Holder.LIST, element(use.only(where), where), null, raw);
        }
        if (raw == Set.class) {
            return new FieldType(
                    name, number, Holder.SET, refuseArrays(element(use.only(where), where), where), null, raw);
        }
        if (raw == Map.class) {
            if (use.args().size() != 2) {
                throw new SchemaException(where + ": a Map without its types (expected: Map<K, V>)");
            }
            Shape key = refuseArrays(element(use.args().get(0), where + ", key"), where + ", key");
            return new FieldType(name, number, Holder.MAP, element(use.args().get(1), where + ", value"), key, raw);
        }
        Shape shape = shape(use, where);
        boolean isOptional = shape == Scalar.URI || nullable && !hasNull(shape) && !raw.isPrimitive();
        return new FieldType(name, number, isOptional ? Holder.NULLABLE : Holder.PLAIN, shape, null, raw);
    }

    /**
     * Returns whether a field of this type is read as null if the field was not sent, no matter whether the declaration
     * of the field allows null. The result is false for every enum, even for an enum without a constant of number 0. A
     * field of such an enum is read as null too.
     */
    public static boolean hasNull(Shape shape) {
        return shape instanceof MessageType
                || shape instanceof WellKnown
                || shape == Scalar.UUID
                || shape == Scalar.BIG_INTEGER;
    }

    private Shape element(Use use, String where) {
        Scalar box = BOXES.get(use.raw());
        if (box != null) {
            return box;
        }
        if (use.raw() == Optional.class) {
            throw new SchemaException(Refusals.optionalInside(where));
        }
        return isContainer(use.raw()) ? wrapper(use, where) : shape(use, where);
    }

    /**
     * Returns {@code element}, or throws a {@link SchemaException} if it is a byte array. In Java, an array is equal
     * only to itself, and not to another array with the same bytes.
     *
     * @param element type of a set's elements or of a map's keys
     * @param where names the set or the map in the text of the exception
     */
    private static Shape refuseArrays(Shape element, String where) {
        if (element == Scalar.BYTES) {
            throw new SchemaException(Refusals.bytesAsKey(where));
        }
        return element;
    }

    /**
     * Returns a message that has a list, set or map as field 1. It is used where Protobuf does not allow a list, set or
     * map itself, for example for the inner list of a list of lists, or for a list that can be null.
     */
    private MessageType wrapper(Use use, String where) {
        Shape known = shapes.get(use);
        if (known instanceof MessageType message) {
            return message;
        }
        MessageType message = new MessageType(use.simpleName(), MessageType.Kind.WRAPPER, use.raw(), use.key());
        return addWhole(
                use, message, () -> message.fields(List.of(field("items", 1, use, false, where)), NumberSource.FIXED));
    }

    /**
     * Adds a message to {@link #shapes}, and then maps its fields. The message is added first because its type may
     * contain itself. If the mapping of the fields fails, the message is removed again, together with all messages that
     * were added later, since they may contain it.
     *
     * @param fields maps the fields of the message
     */
    private MessageType addWhole(Use use, MessageType message, Runnable fields) {
        int first = unfinished.size();
        unfinished.add(use);
        shapes.put(use, message);
        boolean isWhole = false;
        try {
            fields.run();
            isWhole = true;
        } finally {
            List<Use> since = unfinished.subList(first, unfinished.size());
            if (!isWhole) {
                since.forEach(shapes::remove);
            }
            if (!isWhole || first == 0) {
                since.clear();
            }
        }
        return message;
    }

    private Shape shape(Use use, String where) {
        Class<?> raw = use.raw();
        Shape simple = SIMPLE.get(raw);
        if (simple != null) {
            return simple;
        }
        Shape known = shapes.get(use);
        if (known != null) {
            return known;
        }
        if (raw.isEnum()) {
            Shape type = enumType(use);
            shapes.put(use, type);
            return type;
        }
        String hint = refusal(raw);
        if (hint != null) {
            throw new SchemaException(where + ": " + use + " cannot be mapped to Protobuf: " + hint);
        }
        boolean isSealed = raw.isSealed() && Modifier.isAbstract(raw.getModifiers());
        Constructed constructed = raw.isRecord() || isSealed ? null : Constructed.of(raw);
        MessageType.Kind kind = raw.isRecord()
                ? MessageType.Kind.RECORD
                : isSealed
                        ? MessageType.Kind.ONEOF
                        : constructed != null ? MessageType.Kind.CONSTRUCTED : MessageType.Kind.BEAN;
        MessageType message = new MessageType(use.simpleName(), kind, raw, use.key());
        return addWhole(use, message, () -> {
            if (raw.isRecord()) {
                record(message, use);
            } else if (isSealed) {
                oneOf(message, use);
            } else if (constructed != null) {
                constructed(message, use, constructed);
            } else {
                bean(message, use);
            }
        });
    }

    private static @Nullable String refusal(Class<?> raw) {
        if (raw.isArray()) {
            return Refusals.ARRAY;
        }
        if (Collection.class.isAssignableFrom(raw) || Map.class.isAssignableFrom(raw)) {
            return Refusals.COLLECTION;
        }
        if (Refusals.isOfJdk(raw.getName()) || raw.isPrimitive()) {
            return Refusals.ofJdk(raw.getName().replace('$', '.'));
        }
        return !raw.isSealed() && Modifier.isAbstract(raw.getModifiers()) ? Refusals.ABSTRACT : null;
    }

    private void record(MessageType message, Use use) {
        Class<?> raw = use.raw();
        RecordComponent[] components = raw.getRecordComponents();
        Numbers numbers =
                new Numbers(raw.getName(), lock.entry(use), NumberSource.ORDER, List.of(components), extending);
        List<FieldType> fields = new ArrayList<>();
        List<Method> getters = new ArrayList<>();
        Class<?>[] types = new Class<?>[components.length];
        for (int i = 0; i < components.length; i++) {
            RecordComponent component = components[i];
            String where = raw.getName() + "." + component.getName();
            types[i] = component.getType();
            refuseStrayNumber(component);
            getters.add(component.getAccessor());
            Use type = Use.of(component.getGenericType(), use.bindings(), where);
            FieldType field = field(
                    component.getName(),
                    numbers.of(component, component.getName(), i + 1),
                    type,
                    // Some annotations, such as Spring's Nullable, do not have record components as a target. The
                    // compiler puts such an annotation on the accessor, but not on the component, so the accessor is
                    // checked too.
                    nullable(
                            type.raw(),
                            component,
                            component.getAnnotatedType(),
                            component.getAccessor(),
                            component.getAccessor().getAnnotatedReturnType()),
                    where);
            fields.add(field);
        }
        try {
            message.fields(fields, numbers.source())
                    .members(getters, List.of(), raw.getDeclaredConstructor(types))
                    .reserved(numbers.reserved())
                    .formerNames(numbers.formerNames());
        } catch (NoSuchMethodException e) {
            throw new IllegalStateException(raw + " has no canonical constructor", e);
        }
    }

    /**
     * Throws an exception if the accessor of a record's component has a {@link Field} annotation that the component
     * itself does not have. This happens only if the accessor is written in the source. An accessor that the compiler
     * makes has the same annotations as the component.
     */
    private static void refuseStrayNumber(RecordComponent component) {
        Method accessor = component.getAccessor();
        Field onAccessor = accessor.getAnnotation(Field.class);
        if (onAccessor != null && !onAccessor.equals(component.getAnnotation(Field.class))) {
            throw strayNumber(accessor, true);
        }
    }

    /**
     * Throws an exception if a class or one of its superclasses has a {@link Field} annotation that RPCX would ignore.
     * RPCX reads this annotation only on the fields and methods in {@code read}.
     *
     * @param read for each component of the class, the field or getter whose {@link Field} annotation RPCX reads
     */
    private static void refuseStrayNumbers(Class<?> raw, List<AnnotatedElement> read) {
        for (Class<?> c = raw; c != null && c != Object.class; c = c.getSuperclass()) {
            for (java.lang.reflect.Field field : c.getDeclaredFields()) {
                if (field.isAnnotationPresent(Field.class) && !read.contains(field)) {
                    throw strayNumber(field, false);
                }
            }
            for (Method method : c.getDeclaredMethods()) {
                // Bridge methods are left out. A bridge has the annotations of the method that it calls, because the
                // compiler copies them.
                if (method.isAnnotationPresent(Field.class) && !method.isBridge() && !read.contains(method)) {
                    throw strayNumber(method, true);
                }
            }
        }
    }

    private static SchemaException strayNumber(Member member, boolean isMethod) {
        return new SchemaException(
                Accessors.strayNumber(member.getDeclaringClass().getName(), member.getName(), isMethod));
    }

    private void bean(MessageType message, Use use) {
        Class<?> raw = use.raw();
        Constructor<?> constructor;
        try {
            constructor = raw.getDeclaredConstructor();
        } catch (NoSuchMethodException e) {
            throw new SchemaException(Accessors.withoutConstructor(raw.getName()));
        }
        Map<String, BeanProperty> properties = new LinkedHashMap<>();
        Set<String> names = new HashSet<>();
        Map<TypeVariable<?>, Use> bindings = new HashMap<>(use.bindings());
        for (Class<?> c = raw; c != null && c != Object.class; c = c.getSuperclass()) {
            Map<String, BeanProperty> own = BeanProperty.of(c, raw, names, properties);
            own.putAll(properties);
            properties = own;
            if (c.getGenericSuperclass() instanceof ParameterizedType parent) {
                bindings.putAll(Use.of(parent, bindings, raw.getName()).bindings());
            }
        }
        if (properties.isEmpty()) {
            throw new SchemaException(raw.getName() + ": a class without any property that has a getter and a setter");
        }
        List<BeanProperty> list = List.copyOf(properties.values());
        refuseShared(raw, list);
        List<AnnotatedElement> elements = new ArrayList<>();
        list.forEach(p -> elements.add(p.annotated()));
        refuseStrayNumbers(raw, elements);
        Numbers numbers = new Numbers(raw.getName(), lock.entry(use), NumberSource.ORDER, elements, extending);
        List<FieldType> fields = new ArrayList<>();
        List<Method> getters = new ArrayList<>();
        List<Method> setters = new ArrayList<>();
        for (int i = 0; i < list.size(); i++) {
            BeanProperty property = list.get(i);
            String where = raw.getName() + "." + property.name();
            Use type = Use.of(property.getter().getGenericReturnType(), bindings, where);
            boolean nullable = nullable(
                    type.raw(),
                    property.annotated(),
                    property.field(),
                    property.field().getAnnotatedType(),
                    property.getter(),
                    property.getter().getAnnotatedReturnType());
            fields.add(field(
                    property.name(), numbers.of(property.annotated(), property.name(), i + 1), type, nullable, where));
            getters.add(property.getter());
            setters.add(property.setter());
        }
        message.fields(fields, numbers.source())
                .members(getters, setters, constructor)
                .reserved(numbers.reserved())
                .formerNames(numbers.formerNames());
    }

    private void constructed(MessageType message, Use use, Constructed found) {
        Class<?> raw = use.raw();
        List<AnnotatedElement> annotated = new ArrayList<>();
        List<AnnotatedElement> read = new ArrayList<>();
        for (Constructed.Component component : found.components()) {
            annotated.add(component.annotated());
            read.addAll(component.numbered());
        }
        refuseStrayNumbers(raw, read);
        Numbers numbers = new Numbers(raw.getName(), lock.entry(use), NumberSource.ORDER, annotated, extending);
        List<FieldType> fields = new ArrayList<>();
        List<Method> getters = new ArrayList<>();
        for (int i = 0; i < annotated.size(); i++) {
            Constructed.Component component = found.components().get(i);
            String where = raw.getName() + "." + component.name();
            Use type = Use.of(component.getter().getGenericReturnType(), use.bindings(), where);
            boolean nullable = nullable(
                    type.raw(),
                    component.parameter(),
                    component.parameter().getAnnotatedType(),
                    component.field(),
                    component.field().getAnnotatedType(),
                    component.getter(),
                    component.getter().getAnnotatedReturnType());
            int number = numbers.of(annotated.get(i), component.name(), i + 1);
            fields.add(field(component.name(), number, type, nullable, where));
            getters.add(component.getter());
        }
        message.fields(fields, numbers.source())
                .members(getters, List.of(), found.constructor())
                .reserved(numbers.reserved());
    }

    private static void refuseShared(Class<?> raw, List<BeanProperty> properties) {
        Map<Method, BeanProperty> owners = new HashMap<>();
        for (BeanProperty property : properties) {
            for (Method accessor : List.of(property.getter(), property.setter())) {
                BeanProperty other = owners.putIfAbsent(accessor, property);
                if (other != null) {
                    throw new SchemaException(raw.getName() + "." + property.name() + ": " + accessor.getName()
                            + "() is also the accessor of " + other.name()
                            + " (expected: one property for each accessor)");
                }
            }
        }
    }

    private void oneOf(MessageType message, Use use) {
        Class<?> raw = use.raw();
        Set<Class<?>> cases = new LinkedHashSet<>();
        permitted(raw, cases);
        List<Class<?>> numbered = cases.stream()
                .filter(each -> !each.isAnnotationPresent(Unknown.class))
                .toList();
        Numbers numbers = new Numbers(raw.getName(), lock.entry(use), NumberSource.ORDER, numbered, extending);
        Map<String, Class<?>> named = new HashMap<>();
        List<FieldType> fields = new ArrayList<>();
        int position = 0;
        for (Class<?> each : cases) {
            if (each.isAnnotationPresent(Unknown.class)) {
                Object other = message.unknownCase();
                if (other != null) {
                    throw twoUnknown(raw, other.getClass().getName(), each.getName());
                }
                if (each.isAnnotationPresent(Field.class)) {
                    throw new SchemaException(Cases.numbered(raw.getName(), each.getName()));
                }
                message.unknownCase(instance(each));
                numbers.refuseOtherNumber(Cases.field(each.getSimpleName()), 0);
                continue;
            }
            position++;
            String where = raw.getName() + ", case " + each.getName();
            if (each.isEnum() || !isMessage(each)) {
                throw new SchemaException(where + ": expected a record or a class with accessors");
            }
            if (each.getTypeParameters().length > 0) {
                throw new SchemaException(where + ": a generic case cannot be mapped");
            }
            String name = Cases.field(each.getSimpleName());
            Class<?> namesake = named.putIfAbsent(name, each);
            if (namesake != null) {
                throw new SchemaException(Cases.namesakes(raw.getName(), namesake.getName(), each.getName(), name));
            }
            Shape shape = shape(Use.of(each, Map.of(), where), where);
            int number = numbers.of(each, name, position);
            // In an earlier version of the schema, this case may have stood for all unknown cases. If so, the lock file
            // has the name of the case's class with the number 0. The case is refused, because its number would change
            // from 0 to another one.
            numbers.refuseOtherNumber(each.getSimpleName(), number);
            fields.add(new FieldType(name, number, Holder.PLAIN, shape, null, each));
        }
        message.fields(fields, numbers.source()).reserved(numbers.reserved()).formerNames(numbers.formerNames());
    }

    private static SchemaException twoUnknown(Class<?> of, String one, String other) {
        return new SchemaException(of.getName() + ": " + one + " and " + other
                + " are both annotated @Unknown (expected: one that stands for what is not known)");
    }

    private static void permitted(Class<?> sealed, Set<Class<?>> into) {
        for (Class<?> each : sealed.getPermittedSubclasses()) {
            if (each.isSealed() && Modifier.isAbstract(each.getModifiers())) {
                permitted(each, into);
            } else {
                into.add(each);
            }
        }
    }

    private static Object instance(Class<?> unknown) {
        if (!unknown.isRecord() || unknown.getRecordComponents().length > 0) {
            throw new SchemaException(unknown.getName() + ": an unknown case must be a record without components");
        }
        try {
            Constructor<?> constructor = unknown.getDeclaredConstructor();
            constructor.setAccessible(true);
            return constructor.newInstance();
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(unknown + " cannot be made", e);
        }
    }

    private EnumType enumType(Use use) {
        Class<?> raw = use.raw();
        Enum<?>[] constants = (Enum<?>[]) raw.getEnumConstants();
        Enum<?> unknown = null;
        boolean isDeclared = false;
        List<AnnotatedElement> elements = new ArrayList<>();
        for (Enum<?> constant : constants) {
            AnnotatedElement element = constantField(raw, constant);
            boolean declared = element.isAnnotationPresent(Unknown.class);
            if (declared && isDeclared && unknown != null) {
                throw twoUnknown(raw, unknown.name(), constant.name());
            }
            isDeclared |= declared;
            if (declared
                    || unknown == null
                            && Set.of("UNKNOWN", "UNSPECIFIED", "UNRECOGNIZED").contains(constant.name())) {
                unknown = constant;
            }
            elements.add(element);
        }
        if (unknown != null) {
            Field field = elements.remove(unknown.ordinal()).getAnnotation(Field.class);
            if (field != null && field.value() != 0) {
                throw new SchemaException(Cases.numbered(raw.getName(), unknown.name()));
            }
        }
        Numbers numbers = new Numbers(raw.getName(), lock.entry(use), NumberSource.ORDER, elements, extending);
        if (unknown != null) {
            numbers.reserve(0, unknown.name() + ", which stands for the unknown");
            numbers.refuseOtherNumber(unknown.name(), 0);
        }
        List<Integer> all = new ArrayList<>();
        int position = 0;
        for (Enum<?> constant : constants) {
            all.add(constant == unknown ? 0 : numbers.of(constantField(raw, constant), constant.name(), ++position));
        }
        for (int i = 0; i < all.size(); i++) {
            if (all.get(i) < 0) {
                throw new SchemaException(raw.getName() + "." + constants[i].name() + ": number " + all.get(i)
                        + " (expected: 0 or more)");
            }
        }
        return new EnumType(
                use.simpleName(), raw, all, unknown, numbers.source(), numbers.reserved(), numbers.formerNames());
    }

    private static AnnotatedElement constantField(Class<?> type, Enum<?> constant) {
        try {
            return type.getField(constant.name());
        } catch (NoSuchFieldException e) {
            throw new IllegalStateException(e);
        }
    }

    /**
     * Says whether one of the elements has an annotation with the simple name {@code Nullable}, from any package. An
     * annotation that is not kept at run time is found in the file of the class, see {@link FileNullables}. No file is
     * read if the value has the same form with and without the annotation.
     *
     * @param value type of the value that the elements declare
     */
    private boolean nullable(Class<?> value, AnnotatedElement... elements) {
        for (AnnotatedElement each : elements) {
            for (var annotation : each.getAnnotations()) {
                if (annotation.annotationType().getSimpleName().equals("Nullable")) {
                    return true;
                }
            }
        }
        Shape simple = SIMPLE.get(value);
        boolean isAlike = value.isPrimitive()
                || BOXES.containsKey(value)
                || value == Optional.class
                || simple != null && hasNull(simple);
        if (!isAlike) {
            for (AnnotatedElement each : elements) {
                Class<?> in = declaring(each);
                if (in != null && file(in).isOn(each)) {
                    return true;
                }
            }
        }
        return false;
    }

    private FileNullables file(Class<?> type) {
        return files.computeIfAbsent(type, FileNullables::of);
    }

    /** Returns the class whose file has the annotations of an element; null for an {@code AnnotatedType}. */
    private static @Nullable Class<?> declaring(AnnotatedElement element) {
        if (element instanceof Parameter parameter) {
            return parameter.getDeclaringExecutable().getDeclaringClass();
        }
        if (element instanceof RecordComponent component) {
            return component.getDeclaringRecord();
        }
        return element instanceof Member member ? member.getDeclaringClass() : null;
    }

    static String capital(String name) {
        return Character.toUpperCase(name.charAt(0)) + name.substring(1);
    }
}
