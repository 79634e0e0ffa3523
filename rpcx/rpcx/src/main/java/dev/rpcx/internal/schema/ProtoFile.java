package dev.rpcx.internal.schema;

import com.google.protobuf.DescriptorProtos.DescriptorProto;
import com.google.protobuf.DescriptorProtos.EnumDescriptorProto;
import com.google.protobuf.DescriptorProtos.EnumValueDescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Label;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.MessageOptions;
import com.google.protobuf.DescriptorProtos.MethodDescriptorProto;
import com.google.protobuf.DescriptorProtos.OneofDescriptorProto;
import com.google.protobuf.DescriptorProtos.ServiceDescriptorProto;
import dev.rpcx.internal.schema.FieldType.Holder;
import dev.rpcx.schema.SchemaException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Makes a {@code .proto} file that describes services and their messages to callers in other languages. The result is
 * available as a descriptor and as text. If a message contains a decimal, a local date, a local date-time or a zoned
 * date-time, the file imports {@code rpcx/types.proto}, which is in RPCX's jar. If it contains a local time or a
 * date-time with an offset, the file imports one of Google's common files, which protoc does not bring along. Not
 * thread-safe.
 */
public final class ProtoFile {
    /**
     * Path for importing the file with RPCX's messages for decimals, local dates, local date-times and zoned
     * date-times. Protobuf itself has no messages for these types.
     */
    public static final String TYPES = "rpcx/types.proto";

    private static final String EMPTY = "google.protobuf.Empty";

    private final String protoPackage;
    private final FileDescriptorProto.Builder file;
    private final Map<Shape, String> names = new LinkedHashMap<>();
    private final Set<String> taken = new HashSet<>();

    /** Names that messages and enums have got by {@link #typeName}, before {@link #unique} has changed them. */
    private final Set<String> typeNames = new HashSet<>();

    /** Names of services that have been reserved and not been used yet. They are also in {@link #taken}. */
    private final Set<String> reservedServices = new HashSet<>();

    /**
     * A method of a service, with the messages that it takes and returns.
     *
     * @param streamsIn whether a client can send many requests in one call
     * @param streamsOut whether the server can send many replies in one call
     * @param errors states of the exceptions that arrive as themselves
     */
    public record Rpc(
            String name,
            MessageType request,
            MessageType reply,
            boolean streamsIn,
            boolean streamsOut,
            List<MessageType> errors) {
        public Rpc {
            errors = List.copyOf(errors);
        }

        /** Creates a method none of whose exceptions arrives as itself. */
        public Rpc(String name, MessageType request, MessageType reply, boolean streamsIn, boolean streamsOut) {
            this(name, request, reply, streamsIn, streamsOut, List.of());
        }
    }

    /**
     * Creates a file that has no services and no messages yet.
     *
     * @param protoPackage package of the file, such as {@code com.acme.greeter}; empty for none
     * @throws SchemaException if the package is not a list of names with dots between them. A name consists of ASCII
     *     letters, digits and underscores, and begins with a letter
     */
    public ProtoFile(String protoPackage) {
        this.protoPackage = ProtoNames.checkedPackage(protoPackage);
        String path = protoPackage.isEmpty() ? "export" : protoPackage.replace('.', '/');
        file = FileDescriptorProto.newBuilder().setName(path + ".proto").setSyntax("proto3");
        file.getOptionsBuilder().setJavaMultipleFiles(true);
        if (!protoPackage.isEmpty()) {
            file.setPackage(protoPackage);
        }
    }

    /**
     * Keeps the names of services free, so that no message of a service that is added before gets one of them. The name
     * of a service is in the paths of gRPC, and a server computes the name without the messages of this file.
     *
     * @param services published names of all services of this file
     * @throws SchemaException if two services would have the same name in the file
     */
    public ProtoFile reserve(List<String> services) {
        Map<String, String> published = new HashMap<>();
        for (String name : services) {
            String wanted = ProtoNames.identifier(name);
            String other = published.put(wanted, name);
            if (other != null && !other.equals(name)) {
                throw new SchemaException("the services " + other + " and " + name
                        + " have the same name in a .proto: rename one, or export them into two packages");
            }
            if (taken.add(wanted)) {
                reservedServices.add(wanted);
            }
        }
        return this;
    }

    /**
     * Adds a service, and all messages and enums that its methods need. In the file, the names of methods begin with a
     * capital letter, as is usual in Protobuf. The exceptions of the methods are messages of the file, since a
     * {@code .proto} cannot say which method throws what.
     *
     * @throws SchemaException if two methods, or two fields of one message, would have the same name in the file. Names
     *     of fields count as the same if they differ only in underscores
     */
    public ProtoFile service(String name, List<Rpc> rpcs) {
        String wanted = ProtoNames.identifier(name);
        String serviceName = reservedServices.remove(wanted) ? wanted : unique(wanted, "Service");
        ServiceDescriptorProto.Builder service =
                ServiceDescriptorProto.newBuilder().setName(serviceName);
        // The user's own types are added before the messages that RPCX makes for the methods of this service, so that
        // the user's types usually keep their names. If a message that RPCX makes needs a name that is taken, that
        // message gets another name.
        for (Rpc rpc : rpcs) {
            for (MessageType message : List.of(rpc.request(), rpc.reply())) {
                if (isOfUser(message)) {
                    message(message, message.protoName());
                }
                message.fields().forEach(field -> typeOf(field.shape()));
            }
            rpc.errors().forEach(this::message);
        }
        Map<String, String> methods = new HashMap<>();
        for (Rpc rpc : rpcs) {
            String capital = ProtoNames.identifier(rpc.name());
            String other = methods.put(capital, rpc.name());
            if (other != null) {
                throw new SchemaException(name + ": the methods " + other + " and " + rpc.name()
                        + " have the same name in a .proto: rename one");
            }
            service.addMethod(MethodDescriptorProto.newBuilder()
                    .setName(capital)
                    .setInputType(reference(rpc.request(), serviceName, capital + "Request"))
                    .setOutputType(reference(rpc.reply(), serviceName, capital + "Reply"))
                    .setClientStreaming(rpc.streamsIn())
                    .setServerStreaming(rpc.streamsOut()));
        }
        file.addService(service);
        return this;
    }

    /**
     * Adds a message, and all messages and enums that the message contains. Returns the name of the message in the
     * file.
     */
    public String message(MessageType type) {
        return message(type, type.protoName());
    }

    private static boolean isOfUser(MessageType type) {
        return type.kind() != MessageType.Kind.WRAPPER && type.kind() != MessageType.Kind.PARAMETERS;
    }

    private String reference(MessageType type, String serviceName, String name) {
        if (isOfUser(type)) {
            return qualified(message(type, type.protoName()));
        }
        if (type.fields().isEmpty()) {
            importFile("google/protobuf/empty.proto");
            return '.' + EMPTY;
        }
        return qualified(message(type, taken.contains(name) ? serviceName + name : name));
    }

    private String qualified(String name) {
        return protoPackage.isEmpty() ? '.' + name : '.' + protoPackage + '.' + name;
    }

    private void importFile(String path) {
        if (!file.getDependencyList().contains(path)) {
            file.addDependency(path);
        }
    }

    /**
     * Returns a name that nothing else at the top level of the file has, and reserves the name. If the wanted name is
     * taken, the suffix is added, and a number too if necessary. Messages, enums, enum values and services must all
     * have different names.
     */
    private String unique(String wanted, String suffix) {
        String name = ascii(wanted);
        String free = name;
        for (int i = 1; !taken.add(free); i++) {
            free = name + suffix + (i == 1 ? "" : i);
        }
        return free;
    }

    /**
     * Replaces the characters that Protobuf does not allow in a name. The result has only ASCII letters, digits and
     * underscores, and begins with a letter.
     */
    private static String ascii(String name) {
        String ascii = name.replaceAll("[^A-Za-z0-9_]", "_");
        return ascii.matches("[A-Za-z].*") ? ascii : "X" + ascii;
    }

    /** Returns a name for a message or an enum. If another one has the wanted name, a number is added. */
    private String typeName(String wanted, String suffix) {
        String name = wanted;
        for (int i = 2; !typeNames.add(name); i++) {
            name = wanted + i;
        }
        return unique(name, suffix);
    }

    private String message(MessageType type, String wanted) {
        String known = names.get(type);
        if (known != null) {
            return known;
        }
        String name = typeName(wanted, "Message");
        names.put(type, name);
        // The message is added before its fields are described, because one of the fields may contain the same message.
        int index = file.getMessageTypeCount();
        file.addMessageType(DescriptorProto.newBuilder().setName(name));
        file.setMessageType(index, describe(type, name));
        return name;
    }

    private DescriptorProto describe(MessageType type, String name) {
        DescriptorProto.Builder message = DescriptorProto.newBuilder().setName(name);
        boolean oneof = type.kind() == MessageType.Kind.ONEOF;
        if (oneof && !type.fields().isEmpty()) {
            message.addOneofDecl(OneofDescriptorProto.newBuilder().setName("kind"));
        }
        List<FieldType> fields = new ArrayList<>(type.fields());
        fields.sort(Comparator.comparingInt(FieldType::number));
        Map<String, String> used = new HashMap<>();
        for (FieldType field : fields) {
            String fieldName = snake(field.name());
            String other = used.put(fieldName.replace("_", ""), field.name());
            if (other != null) {
                throw new SchemaException(type.javaClass().getName() + ": " + other + " and " + field.name()
                        + " have the same name in a .proto: rename one");
            }
            FieldDescriptorProto.Builder descriptor = FieldDescriptorProto.newBuilder()
                    .setName(oneof && fieldName.equals("kind") ? "kind_" : fieldName)
                    .setNumber(field.number())
                    .setLabel(Label.LABEL_OPTIONAL);
            if (field.holder() == Holder.MAP) {
                mapEntry(message, descriptor, field, name);
            } else {
                setType(descriptor, field.shape());
            }
            switch (field.holder()) {
                case LIST, SET, MAP -> descriptor.setLabel(Label.LABEL_REPEATED);
                case NULLABLE, OPTIONAL -> {
                    // A field that holds a message can always be absent, so it needs no mark `optional`.
                    if (!(field.shape() instanceof MessageType) && !(field.shape() instanceof WellKnown)) {
                        descriptor.setProto3Optional(true);
                    }
                }
                case PLAIN -> {
                    if (oneof) {
                        descriptor.setOneofIndex(0);
                    }
                }
            }
            message.addField(descriptor);
        }
        // A descriptor needs a oneof for each `optional` field. These oneofs have to come after all others.
        for (FieldDescriptorProto.Builder field : message.getFieldBuilderList()) {
            if (field.getProto3Optional()) {
                field.setOneofIndex(message.getOneofDeclCount());
                message.addOneofDecl(OneofDescriptorProto.newBuilder().setName('_' + field.getName()));
            }
        }
        Set<String> live = new HashSet<>();
        message.getFieldList().forEach(field -> live.add(field.getName()));
        for (MessageType.Reserved reserved : type.reserved()) {
            // A lock file has the number 0 for the case of a sealed type that stands for all unknown cases, but
            // Protobuf has no field 0.
            if (reserved.number() > 0) {
                message.addReservedRange(DescriptorProto.ReservedRange.newBuilder()
                        .setStart(reserved.number())
                        .setEnd(reserved.number() + 1));
                String reservedName = snake(reserved.name());
                if (live.add(reservedName)) {
                    message.addReservedName(reservedName);
                }
            }
        }
        return message.build();
    }

    /**
     * Describes a map as Protobuf's descriptors do, that is, as a list of messages with a key and a value. The text of
     * the file has {@code map<>} instead, if Protobuf allows keys of this type in a {@code map<>}.
     */
    private void mapEntry(
            DescriptorProto.Builder message, FieldDescriptorProto.Builder field, FieldType type, String messageName) {
        Shape key = java.util.Objects.requireNonNull(type.key());
        boolean real = key instanceof Scalar scalar
                && switch (scalar) {
                    case BOOL, BYTE, SHORT, CHAR, INT, LONG, STRING -> true;
                    default -> false;
                };
        // protoc accepts no other name for the message of a map's entries.
        String name = ProtoNames.identifier(snake(type.name())) + "Entry";
        DescriptorProto.Builder entry = DescriptorProto.newBuilder().setName(name);
        FieldDescriptorProto.Builder keyField =
                FieldDescriptorProto.newBuilder().setName("key").setNumber(1).setLabel(Label.LABEL_OPTIONAL);
        FieldDescriptorProto.Builder valueField =
                FieldDescriptorProto.newBuilder().setName("value").setNumber(2).setLabel(Label.LABEL_OPTIONAL);
        setType(keyField, key);
        setType(valueField, type.shape());
        entry.addField(keyField).addField(valueField);
        if (real) {
            entry.setOptions(MessageOptions.newBuilder().setMapEntry(true));
        } else {
            // Key and value are marked as `optional`, so that they are sent even if they are 0 or empty, as in a
            // `map<>`.
            optionalScalar(entry);
        }
        message.addNestedType(entry);
        field.setType(FieldDescriptorProto.Type.TYPE_MESSAGE).setTypeName(qualified(messageName) + '.' + name);
    }

    private static void optionalScalar(DescriptorProto.Builder entry) {
        for (FieldDescriptorProto.Builder field : entry.getFieldBuilderList()) {
            if (field.getType() != FieldDescriptorProto.Type.TYPE_MESSAGE) {
                field.setProto3Optional(true).setOneofIndex(entry.getOneofDeclCount());
                entry.addOneofDecl(OneofDescriptorProto.newBuilder().setName('_' + field.getName()));
            }
        }
    }

    private void setType(FieldDescriptorProto.Builder field, Shape shape) {
        String name = typeOf(shape);
        if (name != null) {
            field.setTypeName(name)
                    .setType(
                            shape instanceof EnumType
                                    ? FieldDescriptorProto.Type.TYPE_ENUM
                                    : FieldDescriptorProto.Type.TYPE_MESSAGE);
        } else {
            field.setType(FieldDescriptorProto.Type.valueOf(
                    "TYPE_" + shape.protoName().toUpperCase(Locale.ROOT)));
        }
    }

    /**
     * Returns the full name of the message or enum that a field refers to; null for a scalar. A message or enum of the
     * user that this file lacks is added to this file. For a well-known type, such as a timestamp, the file that
     * defines the type is imported.
     */
    private @Nullable String typeOf(Shape shape) {
        if (shape instanceof MessageType message) {
            return qualified(message(message, message.protoName()));
        }
        if (shape instanceof EnumType type) {
            return qualified(enumType(type));
        }
        if (shape instanceof WellKnown wellKnown) {
            importFile(
                    switch (wellKnown) {
                        case INSTANT, DATE -> "google/protobuf/timestamp.proto";
                        case DURATION -> "google/protobuf/duration.proto";
                        case LOCAL_TIME -> "google/type/timeofday.proto";
                        case OFFSET_DATE_TIME -> "google/type/datetime.proto";
                        case DECIMAL, LOCAL_DATE, LOCAL_DATE_TIME, ZONED_DATE_TIME -> TYPES;
                    });
            return '.' + shape.protoName();
        }
        return null;
    }

    private String enumType(EnumType type) {
        String known = names.get(type);
        if (known != null) {
            return known;
        }
        String name = typeName(type.protoName(), "Enum");
        names.put(type, name);
        String prefix = snake(name).toUpperCase(Locale.ROOT) + '_';
        Map<Integer, String> values = new java.util.TreeMap<>();
        Enum<?>[] constants = type.constants();
        for (int i = 0; i < constants.length; i++) {
            String value = prefix + constants[i].name().toUpperCase(Locale.ROOT);
            values.put(type.numbers().get(i), unique(value, "_"));
        }
        if (!values.containsKey(0)) {
            values.put(0, unique(prefix + "UNSPECIFIED", "_"));
        }
        EnumDescriptorProto.Builder descriptor =
                EnumDescriptorProto.newBuilder().setName(name);
        values.forEach((number, value) -> descriptor.addValue(
                EnumValueDescriptorProto.newBuilder().setName(value).setNumber(number)));
        for (MessageType.Reserved reserved : type.reserved()) {
            if (values.containsKey(reserved.number())) {
                continue;
            }
            descriptor.addReservedRange(EnumDescriptorProto.EnumReservedRange.newBuilder()
                    .setStart(reserved.number())
                    .setEnd(reserved.number()));
        }
        file.addEnumType(descriptor);
        return name;
    }

    /** Converts a name to snake case. For example, {@code textField} becomes {@code text_field}. */
    static String snake(String name) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < name.length(); i++) {
            char c = name.charAt(i);
            if (c >= 128 || !Character.isLetterOrDigit(c)) {
                c = '_';
            }
            boolean starts = Character.isUpperCase(c)
                    && i > 0
                    && (!Character.isUpperCase(name.charAt(i - 1))
                            || i + 1 < name.length() && Character.isLowerCase(name.charAt(i + 1)));
            if (starts && text.charAt(text.length() - 1) != '_') {
                text.append('_');
            }
            text.append(Character.toLowerCase(c));
        }
        return text.charAt(0) == '_' || Character.isDigit(text.charAt(0)) ? "f" + text : text.toString();
    }

    /** Returns the file as a descriptor, for tools that use protobuf-java. */
    public FileDescriptorProto descriptor() {
        return file.build();
    }

    /** Returns the file as an encoded {@code google.protobuf.FileDescriptorProto}. */
    byte[] bytes() {
        return descriptor().toByteArray();
    }

    /** Returns the file as text, for protoc. */
    public String text() {
        return text(descriptor());
    }

    /** Returns a file that this class has made, perhaps in another process, as text for protoc. */
    public static String text(FileDescriptorProto file) {
        return new ProtoText(file).toString();
    }
}
