package dev.rpcx.codec;

import dev.rpcx.codec.ClassFile.Code;
import dev.rpcx.codec.ClassFile.Label;
import dev.rpcx.codec.ClassFile.Op;
import dev.rpcx.internal.schema.FieldType;
import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.Scalar;
import dev.rpcx.internal.schema.Shape;
import dev.rpcx.internal.schema.WellKnown;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Generates the codec of a record, or of a class with accessors. The codec is usually a hidden class and a nest mate of
 * the type, so that it can access private records too. One call of {@link Out} writes a field whose Java value is a
 * single scalar or well-known value, such as an {@code int} or an {@code Instant}, and one call of {@link In} reads the
 * field, without boxing. All other fields, for example lists, optional fields and those of type {@code Integer}, go
 * through their {@link FieldCodec}.
 *
 * <p>For {@code record Point(int x, String name)} the generated code does the following:
 *
 * <pre>
 * void write(Object value, Out out) { Point p = (Point) value; out.int32(8, p.x()); out.string(18, p.name()); }
 * Object read(In in) {
 *     int x = 0; String name = ""; int taken = 0;
 *     if (in.next(8)) x = in.int32();
 *     if (in.next(18)) { name = in.string(); taken += 40; }
 *     in.take(taken);
 *     if (in.atEnd()) return new Point(x, name);
 *     for (;;) switch (tag = in.tag()) {
 *         case 0: return new Point(x, name);
 *         case 8: x = in.int32(); break;
 *         case 18: in.take(40); name = in.string(); break;
 *         default: in.skip(tag);
 *     }
 * }
 * </pre>
 *
 * <p>If the message type has at most {@code MAX_IN_ORDER} fields, the code first reads fields as long as they come in
 * the order of their numbers. Then the code asks once for the memory of the objects that it has created for these
 * fields. Objects of a field that goes through its {@link FieldCodec} are not included. So at most {@code MAX_IN_ORDER}
 * objects are created before their memory is granted. Each object takes at most 160 bytes in addition to its bytes in
 * the message. For a string beyond ASCII, a decimal of more than eight bytes or an odd offset, {@link In} asks for
 * additional memory when it reads the value.
 *
 * <p>This class is longer than 400 lines because the enum {@code Form} belongs to the methods that add bytecode.
 */
final class Generator {
    /**
     * Serial number of the latest codec class that is not a hidden class. Any thread that creates such a class takes
     * the next number.
     */
    private static final AtomicInteger ORDINARY = new AtomicInteger();

    /**
     * Ordinary codec classes of each type; hidden codec classes are not stored. An ordinary class stays loaded as long
     * as the type's class loader, so codecs of a type that have the same code share one class. The name of each
     * ordinary class ends with a different number. The key of a class is its class file, generated without the number,
     * so that equal code has equal keys. Any thread uses the map of a type, while it holds the lock of that map.
     */
    private static final ClassValue<Map<ByteBuffer, Class<?>>> KEPT = new ClassValue<>() {
        @Override
        protected Map<ByteBuffer, Class<?>> computeValue(Class<?> type) {
            return new HashMap<>();
        }
    };

    /**
     * Maximum number of fields of a message type whose codec first expects the fields of a message in the order of
     * their numbers. Code for this order then stands before the loop that reads fields in any order. A type with more
     * fields gets only the loop, since the code would be too long for the just-in-time compiler.
     */
    private static final int MAX_IN_ORDER = 64;

    private static final String BASE = internal(MessageCodec.class);
    private static final String FIELD = internal(FieldCodec.class);
    private static final String OUT = internal(Out.class);
    private static final String IN = internal(In.class);
    private static final String OBJECT = "Ljava/lang/Object;";

    private final MessageType type;
    private final List<FieldType> fields;
    private final FieldCodec[] codecs;
    private final String self;
    private final String target;
    private final ClassFile file;

    /**
     * Creates a generator of one codec class.
     *
     * @param suffix end of the codec class's name. For an ordinary class, the suffix is a number that no other ordinary
     *     class has. The suffix is empty for a hidden class, and for a class file that is only a key of {@link #KEPT}
     */
    private Generator(MessageType type, FieldCodec[] codecs, String suffix) {
        this.type = type;
        this.codecs = codecs;
        fields = type.fields();
        target = internal(type.javaClass());
        self = target + "$RpcxCodec" + suffix;
        file = new ClassFile(self, BASE);
    }

    /**
     * Generates a codec class for a type, and returns an instance of that class. Returns null if the module, the class
     * loader or the size of the type does not allow a codec class. The result is also null in a native image, and if
     * the codec class cannot access the type's constructor or the class of a field.
     */
    static @Nullable MessageCodec generate(MessageType type, FieldCodec[] fieldCodecs) {
        try {
            if (!reachesValues(type)) {
                return null;
            }
            ClassLoader loader = type.javaClass().getClassLoader();
            if (loader == null || loader.loadClass(Out.class.getName()) != Out.class) {
                return null;
            }
            MethodHandles.Lookup lookup = MethodHandles.privateLookupIn(type.javaClass(), MethodHandles.lookup());
            Class<?> codec = define(type, fieldCodecs, lookup);
            if (codec == null) {
                return null;
            }
            return (MessageCodec) lookup.findConstructor(
                            codec, MethodType.methodType(void.class, MessageType.class, FieldCodec[].class))
                    .invoke(type, fieldCodecs);
        } catch (ReflectiveOperationException | LinkageError | RuntimeException e) {
            logMissing(type + ", reflection instead", e);
            return null;
        } catch (Throwable e) {
            // A native image allows no new classes. The class of its error exists only in native images, so this code
            // cannot name that class, and catches everything.
            logMissing(type + " here, reflection instead", e);
            return null;
        }
    }

    /**
     * Returns whether code in the type's package can access the parameter classes of the constructor and setters. For
     * example, the type can inherit a setter from a class of another package, and the class of the setter's parameter
     * can be visible only in that package. A codec that named this parameter class would fail when it runs.
     */
    private static boolean reachesValues(MessageType type) {
        return Stream.concat(Stream.of(type.constructor()), type.setters().stream())
                .flatMap(maker -> Stream.of(maker.getParameterTypes()))
                .allMatch(value -> reaches(type.javaClass(), value));
    }

    private static boolean reaches(Class<?> from, Class<?> value) {
        Class<?> named = value;
        while (named.isArray()) {
            named = named.getComponentType();
        }
        if (named.isPrimitive()
                || named.getPackageName().equals(from.getPackageName())
                        && named.getClassLoader() == from.getClassLoader()) {
            return true;
        }
        // the virtual machine treats a protected class as a public one
        return (named.getModifiers() & (Modifier.PUBLIC | Modifier.PROTECTED)) != 0
                && from.getModule().canRead(named.getModule())
                && named.getModule().isExported(named.getPackageName(), from.getModule());
    }

    /**
     * Logs that the codec of a type could not be generated. The logger is created only in this method, because creating
     * a logger delays the start of a server by tens of milliseconds.
     */
    private static void logMissing(String what, Throwable why) {
        System.getLogger(Generator.class.getName())
                .log(System.Logger.Level.DEBUG, "no generated codec for " + what, why);
    }

    /**
     * Defines the codec class of a type. If the type belongs to another module or class loader than this library, the
     * codec class is an ordinary class instead of a hidden one. An ordinary class cannot access private members, so
     * this method returns null if the constructor of such a type is private.
     */
    private static @Nullable Class<?> define(MessageType type, FieldCodec[] codecs, MethodHandles.Lookup lookup)
            throws IllegalAccessException {
        if (lookup.hasFullPrivilegeAccess()) {
            byte[] bytes = new Generator(type, codecs, "").bytes();
            return lookup.defineHiddenClass(bytes, true, MethodHandles.Lookup.ClassOption.NESTMATE)
                    .lookupClass();
        }
        if (Modifier.isPrivate(type.constructor().getModifiers())) {
            return null;
        }
        ByteBuffer content = ByteBuffer.wrap(new Generator(type, codecs, "").bytes());
        Map<ByteBuffer, Class<?>> kept = KEPT.get(type.javaClass());
        synchronized (kept) {
            Class<?> known = kept.get(content);
            if (known == null) {
                String suffix = Integer.toString(ORDINARY.incrementAndGet());
                known = lookup.defineClass(new Generator(type, codecs, suffix).bytes());
                kept.put(content, known);
            }
            return known;
        }
    }

    private byte[] bytes() {
        for (int i = 0; i < fields.size(); i++) {
            if (!direct(i)) {
                file.addField(ClassFile.ACC_PRIVATE | ClassFile.ACC_FINAL, "f" + i, 'L' + FIELD + ';');
            }
        }
        constructor();
        write();
        read();
        return file.toBytes();
    }

    /**
     * Returns whether the generated code reads and writes the field at index {@code i} without its {@link FieldCodec},
     * by one method of {@link In} and one of {@link Out}. This is so if the Java value is the single value on the wire
     * ({@link FieldType.Holder#PLAIN}), and its type is scalar or well-known, such as {@code int} or {@code Instant}.
     */
    private boolean direct(int i) {
        FieldType field = fields.get(i);
        return field.holder() == FieldType.Holder.PLAIN
                && (field.shape() instanceof Scalar || field.shape() instanceof WellKnown);
    }

    /**
     * Returns the memory in bytes that the generated code counts for the value of the field at index {@code i}. Returns
     * 0 for a primitive value, and for a field whose {@link FieldCodec} counts the memory.
     */
    private int objectBytes(int i) {
        return direct(i) && Form.of(fields.get(i).shape()).kind(Op.ILOAD) == Op.ALOAD
                ? codecs[i].element.objectBytes
                : 0;
    }

    private void constructor() {
        Code code = file.code(4, 3);
        code.local(Op.ALOAD, 0)
                .local(Op.ALOAD, 1)
                .op2(Op.INVOKESPECIAL, file.method(BASE, "<init>", '(' + MessageType.class.descriptorString() + ")V"));
        for (int i = 0; i < fields.size(); i++) {
            if (!direct(i)) {
                code.local(Op.ALOAD, 0)
                        .local(Op.ALOAD, 2)
                        .push(i)
                        .op(Op.AALOAD)
                        .op2(Op.PUTFIELD, file.field(self, "f" + i, 'L' + FIELD + ';'));
            }
        }
        code.op(Op.RETURN);
        String descriptor = MethodType.methodType(void.class, MessageType.class, FieldCodec[].class)
                .toMethodDescriptorString();
        file.addMethod(ClassFile.ACC_PUBLIC, "<init>", descriptor, code);
    }

    private void write() {
        Code code = file.code(6, 4);
        code.local(Op.ALOAD, 1).op2(Op.CHECKCAST, file.classOf(target)).local(Op.ASTORE, 3);
        if (MessageCodec.hasSubclasses(type)) {
            code.local(Op.ALOAD, 0).local(Op.ALOAD, 1).virtual(BASE, "expectNoSubclass", '(' + OBJECT + ")V");
        }
        for (int i : type.inOrderOfNumbers()) {
            FieldType field = fields.get(i);
            Method getter = type.getters().get(i);
            if (direct(i)) {
                code.local(Op.ALOAD, 2).push(field.tag());
                get(code, getter);
                cast(code, getter.getReturnType(), Form.of(field.shape()).javaClass);
                Form form = Form.of(field.shape());
                code.virtual(OUT, form.out, "(I" + form.outDescriptor() + ")V");
            } else {
                code.local(Op.ALOAD, 0)
                        .op2(Op.GETFIELD, file.field(self, "f" + i, 'L' + FIELD + ';'))
                        .local(Op.ALOAD, 2);
                get(code, getter);
                code.virtual(FIELD, "write", "(L" + OUT + ';' + OBJECT + ")V");
            }
        }
        code.op(Op.RETURN);
        file.addMethod(ClassFile.ACC_PUBLIC, "write", '(' + OBJECT + 'L' + OUT + ";)V", code);
    }

    private void get(Code code, Method getter) {
        code.local(Op.ALOAD, 3)
                .virtual(target, getter.getName(), "()" + getter.getReturnType().descriptorString());
    }

    private void cast(Code code, Class<?> from, Class<?> to) {
        if (!to.isPrimitive() && !to.isAssignableFrom(from)) {
            code.op2(Op.CHECKCAST, file.classOf(internal(to)));
        }
    }

    private void read() {
        int[] slots = new int[fields.size()];
        int next = 3;
        for (int i = 0; i < slots.length; i++) {
            slots[i] = next;
            next += direct(i) ? Form.of(fields.get(i).shape()).slots() : 1;
        }
        int bean = next++;
        int taken = next++;
        Code code = file.code(next + 8, next);
        for (int i = 0; i < slots.length; i++) {
            initial(code, i, slots[i]);
        }
        Label loop = new Label();
        Label done = new Label();
        if (slots.length <= MAX_IN_ORDER) {
            readInOrder(code, slots, taken, done);
        }
        Label otherwise = new Label();
        TreeMap<Integer, Label> cases = new TreeMap<>();
        cases.put(0, done);
        for (FieldType field : fields) {
            cases.put(field.tag(), new Label());
            if (field.isPacked()) {
                cases.put(unpackedTag(field), new Label());
            }
        }
        code.place(loop)
                .local(Op.ALOAD, 1)
                .virtual(IN, "tag", "()I")
                .op(Op.DUP)
                .local(Op.ISTORE, 2)
                .lookupSwitch(cases, otherwise);
        for (int i = 0; i < slots.length; i++) {
            FieldType field = fields.get(i);
            code.place(label(cases, field.tag()));
            if (objectBytes(i) > 0) {
                code.local(Op.ALOAD, 1).push(objectBytes(i)).virtual(IN, "take", "(I)V");
            }
            readField(code, i, slots[i]);
            code.jump(Op.GOTO, loop);
            if (field.isPacked()) {
                code.place(label(cases, unpackedTag(field)));
                readByField(code, i, slots[i], "readUnpacked");
                code.jump(Op.GOTO, loop);
            }
        }
        code.place(otherwise)
                .local(Op.ALOAD, 1)
                .local(Op.ILOAD, 2)
                .virtual(IN, "skip", "(I)V")
                .jump(Op.GOTO, loop)
                .place(done);
        if (type.kind() == MessageType.Kind.BEAN) {
            makeBean(code, slots, bean);
        } else {
            makeByConstructor(code, slots);
        }
        code.op(Op.ARETURN);
        file.addMethod(ClassFile.ACC_PUBLIC, "read", "(L" + IN + ";)" + OBJECT, code);
    }

    /**
     * Adds the code that reads the fields as long as they come in ascending order of their numbers. For each field, the
     * added code checks whether the field comes next. After elements of a list, set or map, the added code checks again
     * for the same field.
     */
    private void readInOrder(Code code, int[] slots, int taken, Label done) {
        code.op(Op.ICONST_0).local(Op.ISTORE, taken);
        for (int i : type.inOrderOfNumbers()) {
            FieldType field = fields.get(i);
            Label again = new Label();
            Label absent = new Label();
            code.place(again)
                    .local(Op.ALOAD, 1)
                    .push(field.tag())
                    .virtual(IN, "next", "(I)Z")
                    .jump(Op.IFEQ, absent);
            readField(code, i, slots[i]);
            if (objectBytes(i) > 0) {
                code.local(Op.ILOAD, taken).push(objectBytes(i)).op(Op.IADD).local(Op.ISTORE, taken);
            }
            if (isRepeated(field.holder())) {
                code.jump(Op.GOTO, again);
            }
            code.place(absent);
        }
        code.local(Op.ALOAD, 1).local(Op.ILOAD, taken).virtual(IN, "take", "(I)V");
        code.local(Op.ALOAD, 1).virtual(IN, "atEnd", "()Z").jump(Op.IFNE, done);
    }

    private static boolean isRepeated(FieldType.Holder holder) {
        return switch (holder) {
            case LIST, SET, MAP -> true;
            case PLAIN, NULLABLE, OPTIONAL -> false;
        };
    }

    private void readField(Code code, int i, int slot) {
        if (direct(i)) {
            Form form = Form.of(fields.get(i).shape());
            code.local(Op.ALOAD, 1)
                    .virtual(IN, form.in, "()" + form.javaClass.descriptorString())
                    .local(form.store(), slot);
        } else {
            readByField(code, i, slot, "read");
        }
    }

    private static Label label(TreeMap<Integer, Label> cases, int tag) {
        Label label = cases.get(tag);
        if (label == null) {
            throw new IllegalStateException("no label for tag " + tag);
        }
        return label;
    }

    private static int unpackedTag(FieldType field) {
        return field.number() << 3 | field.shape().wireType();
    }

    private void initial(Code code, int i, int slot) {
        if (!direct(i)) {
            code.local(Op.ALOAD, 0)
                    .op2(Op.GETFIELD, file.field(self, "f" + i, 'L' + FIELD + ';'))
                    .virtual(FIELD, "start", "()" + OBJECT)
                    .local(Op.ASTORE, slot);
            return;
        }
        Form form = Form.of(fields.get(i).shape());
        if (form == Form.STRING) {
            code.op2(Op.LDC_W, file.string(""));
        } else if (form == Form.BYTES) {
            code.op2(Op.INVOKESTATIC, file.method(IN, "noBytes", "()[B"));
        } else {
            code.op(form.zero());
        }
        code.local(form.store(), slot);
    }

    private void readByField(Code code, int i, int slot, String method) {
        code.local(Op.ALOAD, 0)
                .op2(Op.GETFIELD, file.field(self, "f" + i, 'L' + FIELD + ';'))
                .local(Op.ALOAD, 1)
                .local(Op.ALOAD, slot)
                .virtual(FIELD, method, "(L" + IN + ';' + OBJECT + ')' + OBJECT)
                .local(Op.ASTORE, slot);
    }

    private void makeByConstructor(Code code, int[] slots) {
        code.op2(Op.NEW, file.classOf(target)).op(Op.DUP);
        Class<?>[] parameters = type.constructor().getParameterTypes();
        for (int i = 0; i < slots.length; i++) {
            load(code, i, slots[i], parameters[i]);
        }
        String descriptor = MethodType.methodType(void.class, parameters).toMethodDescriptorString();
        code.op2(Op.INVOKESPECIAL, file.method(target, "<init>", descriptor));
    }

    private void makeBean(Code code, int[] slots, int bean) {
        code.op2(Op.NEW, file.classOf(target))
                .op(Op.DUP)
                .op2(Op.INVOKESPECIAL, file.method(target, "<init>", "()V"))
                .local(Op.ASTORE, bean);
        for (int i = 0; i < slots.length; i++) {
            Method setter = type.setters().get(i);
            code.local(Op.ALOAD, bean);
            load(code, i, slots[i], setter.getParameterTypes()[0]);
            Class<?> result = setter.getReturnType();
            String descriptor =
                    MethodType.methodType(result, setter.getParameterTypes()).toMethodDescriptorString();
            code.virtual(target, setter.getName(), descriptor);
            if (result == long.class || result == double.class) {
                code.op(Op.POP2);
            } else if (result != void.class) {
                code.op(Op.POP);
            }
        }
        code.local(Op.ALOAD, bean);
    }

    private void load(Code code, int i, int slot, Class<?> as) {
        if (direct(i)) {
            Form form = Form.of(fields.get(i).shape());
            code.local(form.load(), slot);
            cast(code, form.javaClass, as);
            return;
        }
        code.local(Op.ALOAD, 0)
                .op2(Op.GETFIELD, file.field(self, "f" + i, 'L' + FIELD + ';'))
                .local(Op.ALOAD, slot)
                .virtual(FIELD, "finish", '(' + OBJECT + ')' + OBJECT);
        cast(code, Object.class, as);
    }

    private static String internal(Class<?> c) {
        return c.isArray() ? c.descriptorString() : c.getName().replace('.', '/');
    }

    /**
     * Lists the Java class of each scalar and well-known type, and the names of the methods of {@link Out} and
     * {@link In} that write and read the values. {@link Scalar#URI} is not in the list, since a field of this type is
     * never {@link FieldType.Holder#PLAIN}.
     */
    private enum Form {
        BOOL(Scalar.BOOL, boolean.class, "bool", "bool"),
        BYTE(Scalar.BYTE, byte.class, "int32", "int8"),
        SHORT(Scalar.SHORT, short.class, "int32", "int16"),
        CHAR(Scalar.CHAR, char.class, "int32", "char16"),
        INT(Scalar.INT, int.class, "int32", "int32"),
        LONG(Scalar.LONG, long.class, "int64", "int64"),
        FLOAT(Scalar.FLOAT, float.class, "float32", "float32"),
        DOUBLE(Scalar.DOUBLE, double.class, "float64", "float64"),
        STRING(Scalar.STRING, String.class, "string", "string"),
        BYTES(Scalar.BYTES, byte[].class, "bytes", "bytes"),
        BIG_INTEGER(Scalar.BIG_INTEGER, java.math.BigInteger.class, "bigInteger", "bigInteger"),
        UUID(Scalar.UUID, java.util.UUID.class, "uuid", "uuid"),
        INSTANT(WellKnown.INSTANT, java.time.Instant.class, "instant", "instant"),
        DATE(WellKnown.DATE, java.util.Date.class, "date", "date"),
        DURATION(WellKnown.DURATION, java.time.Duration.class, "duration", "duration"),
        DECIMAL(WellKnown.DECIMAL, java.math.BigDecimal.class, "decimal", "decimal"),
        LOCAL_DATE(WellKnown.LOCAL_DATE, java.time.LocalDate.class, "localDate", "localDate"),
        LOCAL_DATE_TIME(WellKnown.LOCAL_DATE_TIME, java.time.LocalDateTime.class, "localDateTime", "localDateTime"),
        LOCAL_TIME(WellKnown.LOCAL_TIME, java.time.LocalTime.class, "localTime", "localTime"),
        OFFSET_DATE_TIME(
                WellKnown.OFFSET_DATE_TIME, java.time.OffsetDateTime.class, "offsetDateTime", "offsetDateTime"),
        ZONED_DATE_TIME(WellKnown.ZONED_DATE_TIME, java.time.ZonedDateTime.class, "zonedDateTime", "zonedDateTime");

        private final Shape shape;
        private final Class<?> javaClass;
        private final String out;
        private final String in;

        Form(Shape shape, Class<?> javaClass, String out, String in) {
            this.shape = shape;
            this.javaClass = javaClass;
            this.out = out;
            this.in = in;
        }

        static Form of(Shape shape) {
            for (Form form : values()) {
                if (form.shape == shape) {
                    return form;
                }
            }
            throw new IllegalArgumentException(shape.toString());
        }

        String outDescriptor() {
            return out.equals("int32") ? "I" : javaClass.descriptorString();
        }

        int slots() {
            return this == LONG || this == DOUBLE ? 2 : 1;
        }

        private int kind(int ofInt) {
            return switch (this) {
                case BOOL, BYTE, SHORT, CHAR, INT -> ofInt;
                case LONG -> ofInt + 1;
                case FLOAT -> ofInt + 2;
                case DOUBLE -> ofInt + 3;
                default -> ofInt + 4;
            };
        }

        int load() {
            return kind(Op.ILOAD);
        }

        int store() {
            return kind(Op.ISTORE);
        }

        int zero() {
            return switch (this) {
                case BOOL, BYTE, SHORT, CHAR, INT -> Op.ICONST_0;
                case LONG -> Op.LCONST_0;
                case FLOAT -> Op.FCONST_0;
                case DOUBLE -> Op.DCONST_0;
                default -> Op.ACONST_NULL;
            };
        }
    }
}
