package dev.rpcx;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.function.Predicate;

/**
 * A service and its types, whose source is made from a seed. The source then changes as services do: components,
 * constants and cases are added, are removed and get other types, parameters change their order, and results become
 * streams.
 */
public final class ChangingService {
    /** Source of the annotation that the types use. It is a class of its own. */
    public static final String NULLABLE = "package world;\nimport java.lang.annotation.*;\n"
            + "@Retention(RetentionPolicy.RUNTIME) @Target({ElementType.TYPE_USE, ElementType.FIELD,"
            + " ElementType.PARAMETER, ElementType.METHOD, ElementType.RECORD_COMPONENT})\n"
            + "public @interface Nullable {}\n";

    private static final List<String> PRIMITIVES =
            List.of("boolean", "byte", "short", "char", "int", "long", "float", "double");
    private static final List<String> BOXES =
            List.of("Boolean", "Byte", "Short", "Character", "Integer", "Long", "Float", "Double");
    private static final List<String> OTHERS =
            List.of("String", "byte[]", "BigInteger", "UUID", "BigDecimal", "Instant", "Duration", "LocalDate");
    private static final List<String> WHOLE_NUMBERS =
            List.of("byte", "short", "char", "int", "long", "Byte", "Short", "Character", "Integer", "Long");
    private static final List<String> HOLDERS = List.of("List", "Collection", "Set", "Optional", "Map");

    private static final int RECORDS = 3;
    private static final int ENUMS = 2;
    private static final int SEALED = 2;

    /** A component, a parameter, a constant or a case. */
    private record Member(String name, int number, String type, boolean isNullable, boolean isUnknown) {
        Member withType(String other) {
            return new Member(name, number, other, isNullable, isUnknown);
        }

        Member withName(String other) {
            return new Member(other, number, type, isNullable, isUnknown);
        }
    }

    /** A method's result, and whether it comes by itself, in a future or in a stream. */
    private record Result(String type, String in, boolean isNullable) {}

    private static final class Type {
        final String name;
        final List<Member> members;
        boolean isNumbered;
        boolean isClass;
        int next = 1;

        Type(String name, boolean isNumbered, boolean isClass) {
            this(name, isNumbered, isClass, new ArrayList<>());
        }

        private Type(String name, boolean isNumbered, boolean isClass, List<Member> members) {
            this.name = name;
            this.isNumbered = isNumbered;
            this.isClass = isClass;
            this.members = members;
        }

        Type copy() {
            Type copy = new Type(name, isNumbered, isClass, new ArrayList<>(members));
            copy.next = next;
            return copy;
        }
    }

    private static final class Call {
        final String name;
        final List<Member> parameters;
        final String stream;
        final boolean isNumbered;
        Result result;
        int next = 1;

        Call(String name, boolean isNumbered, List<Member> parameters, String stream, Result result) {
            this.name = name;
            this.isNumbered = isNumbered;
            this.parameters = parameters;
            this.stream = stream;
            this.result = result;
        }

        Call copy() {
            Call copy = new Call(name, isNumbered, new ArrayList<>(parameters), stream, result);
            copy.next = next;
            return copy;
        }
    }

    private final String packageName;
    private final Random random;
    private final List<Type> records = new ArrayList<>();
    private final List<Type> enums = new ArrayList<>();
    private final List<Type> sealed = new ArrayList<>();
    private final List<Call> calls = new ArrayList<>();
    private final List<String> told = new ArrayList<>();

    /** Makes the first version of a service. */
    public ChangingService(String packageName, Random random) {
        this.packageName = packageName;
        this.random = random;
        for (int i = 0; i < ENUMS; i++) {
            Type type = new Type("E" + i, random.nextInt(4) == 0, false);
            enums.add(type);
            constants(type);
        }
        for (int i = 0; i < SEALED; i++) {
            Type type = new Type("S" + i, random.nextInt(4) == 0, false);
            sealed.add(type);
            for (int n = 1 + random.nextInt(2); n > 0; n--) {
                newCase(type);
            }
            if (random.nextBoolean()) {
                type.members.add(new Member(type.name + "Other", 0, "", false, true));
            }
        }
        for (int i = 0; i < RECORDS; i++) {
            Type type = new Type("R" + i, random.nextInt(4) == 0, random.nextInt(5) == 0);
            records.add(type);
            for (int n = 1 + random.nextInt(3); n > 0; n--) {
                type.members.add(component(type, type(2)));
            }
        }
        for (int i = 0; i < 3; i++) {
            String stream = random.nextInt(6) == 0 ? object(1) : "";
            Call call = new Call("m" + i, random.nextInt(4) == 0, new ArrayList<>(), stream, result());
            calls.add(call);
            for (int n = stream.isEmpty() ? random.nextInt(4) : 0; n > 0; n--) {
                call.parameters.add(parameter(call));
            }
        }
    }

    private ChangingService(ChangingService before) {
        packageName = before.packageName;
        random = before.random;
        before.records.forEach(type -> records.add(type.copy()));
        before.enums.forEach(type -> enums.add(type.copy()));
        before.sealed.forEach(type -> sealed.add(type.copy()));
        before.calls.forEach(call -> calls.add(call.copy()));
    }

    /** Returns the next version of this service. */
    public ChangingService changed(int changes) {
        ChangingService next = new ChangingService(this);
        while (next.told.size() < changes) {
            next.change();
        }
        return next;
    }

    /** Returns in words what this version has changed. */
    public List<String> changes() {
        return told;
    }

    private void constants(Type type) {
        for (int n = 1 + random.nextInt(3); n > 0; n--) {
            newConstant(type);
        }
        if (random.nextInt(3) > 0) {
            type.members.add(unknownConstant(type));
        }
    }

    private Member unknownConstant(Type type) {
        return new Member(random.nextBoolean() ? "UNKNOWN" : "X" + type.next++, 0, "", false, true);
    }

    private void newConstant(Type type) {
        int number = type.next++;
        type.members.add(place(type), new Member("C" + number, number, "", false, false));
    }

    private void newCase(Type type) {
        int number = type.next++;
        // the content of a case is like that of a record, and its components change too
        String of = type.name + "Case" + number;
        type.members.add(place(type), new Member(of, number, type(1), false, false));
    }

    private int place(Type type) {
        return random.nextInt(type.members.size() + 1);
    }

    private Member component(Type type, String of) {
        int number = type.next++;
        return new Member("c" + number, number, of, random.nextInt(5) == 0, false);
    }

    private Member parameter(Call call) {
        int number = call.next++;
        return new Member("p" + number, number, random.nextBoolean() ? sent() : type(2), random.nextInt(6) == 0, false);
    }

    private Result result() {
        String in = pick("", "", "CompletableFuture", "Flow.Publisher");
        if (in.isEmpty() && random.nextInt(6) == 0) {
            return new Result("void", "", false);
        }
        boolean isNullable = random.nextInt(5) == 0 && !in.equals("Flow.Publisher");
        return new Result(in.isEmpty() && random.nextBoolean() ? type(2) : sent(), in, isNullable);
    }

    private String pick(String... of) {
        return of[random.nextInt(of.length)];
    }

    private <T> T pick(List<T> of) {
        return of.get(random.nextInt(of.size()));
    }

    private String own() {
        return switch (random.nextInt(3)) {
            case 0 -> "E" + random.nextInt(ENUMS);
            case 1 -> "S" + random.nextInt(SEALED);
            default -> "R" + random.nextInt(RECORDS);
        };
    }

    /** Returns a type for a parameter or a result. More often than not, the service's own types occur in it. */
    private String sent() {
        return random.nextInt(3) == 0 ? own() : object(2);
    }

    private String type(int depth) {
        return random.nextInt(3) == 0 ? pick(PRIMITIVES) : object(depth);
    }

    private String object(int depth) {
        if (depth == 0 || random.nextInt(3) == 0) {
            return random.nextBoolean() ? pick(BOXES) : pick(OTHERS);
        }
        int inner = depth - 1;
        return switch (random.nextInt(8)) {
            case 0 -> "List<" + element(inner) + ">";
            case 1 -> "Set<" + key(inner) + ">";
            case 2 -> "Map<" + key(inner) + "," + element(inner) + ">";
            case 3 -> "G<" + element(inner) + ">";
            case 4 -> depth == 2 ? "Optional<" + element(inner) + ">" : "Collection<" + element(inner) + ">";
            default -> own();
        };
    }

    /** Returns a type that a container may hold. */
    private String element(int depth) {
        String type = object(depth);
        return type.startsWith("Optional<") ? element(depth) : type;
    }

    private String key(int depth) {
        return random.nextBoolean() ? own() : compared(element(depth));
    }

    private void change() {
        switch (random.nextInt(6)) {
            case 0, 1 -> changeRecord();
            case 2 -> changeEnum(pick(enums));
            case 3 -> changeSealed(pick(sealed));
            default -> changeCall(pick(calls));
        }
    }

    private void changeRecord() {
        Type type = pick(records);
        switch (random.nextInt(11)) {
            case 5 -> rename(type.name, "n", type.members);
            case 6 -> {
                type.isClass = !type.isClass;
                tell("%s is a record or a class", type.name);
            }
            case 7 -> {
                type.isNumbered = !type.isNumbered;
                tell("%s is numbered by hand or not any more", type.name);
            }
            case 0 -> {
                Member come = component(type, type(2));
                type.members.add(place(type), come);
                tell("%s gets %s", type.name, come);
            }
            case 1 -> {
                if (type.members.size() > 1) {
                    tell("%s loses %s", type.name, type.members.remove(random.nextInt(type.members.size())));
                }
            }
            case 2 -> swap(type.name, type.members);
            case 3 -> {
                int at = random.nextInt(type.members.size());
                Member old = type.members.get(at);
                type.members.set(at, new Member(old.name, old.number, old.type, !old.isNullable, false));
                tell("%s.%s may be null or not any more", type.name, old);
            }
            default -> retype(type.name, type.members);
        }
    }

    private void changeEnum(Type type) {
        switch (random.nextInt(8)) {
            case 5 -> rename(type.name, "N", type.members);
            case 6 -> {
                type.isNumbered = !type.isNumbered;
                tell("%s is numbered by hand or not any more", type.name);
            }
            case 0 -> {
                newConstant(type);
                tell("%s gets a constant", type.name);
            }
            case 1 -> remove(type, member -> true);
            case 2 -> swap(type.name, type.members);
            case 3 -> {
                if (type.members.stream().noneMatch(Member::isUnknown)) {
                    Member unknown = unknownConstant(type);
                    type.members.add(unknown);
                    tell("%s gets %s", type.name, unknown);
                } else {
                    remove(type, Member::isUnknown);
                }
            }
            case 4 -> {
                if (type.members.stream().noneMatch(member -> member.isUnknown || member.name.equals("UNKNOWN"))) {
                    markUnknown(type);
                }
            }
            default -> {
                int unknown =
                        type.members.stream().map(Member::isUnknown).toList().indexOf(true);
                if (type.isNumbered
                        && unknown >= 0
                        && !type.members.get(unknown).name.equals("UNKNOWN")) {
                    String name = type.members.get(unknown).name;
                    type.members.set(unknown, new Member(name, 0, "", false, false));
                    tell("%s.%s stands for nothing but itself", type.name, name);
                } else if (type.isNumbered && type.members.stream().noneMatch(member -> member.number == 0)) {
                    type.members.add(new Member("Z", 0, "", false, false));
                    tell("%s gets a constant of number 0", type.name);
                }
            }
        }
    }

    private void changeSealed(Type type) {
        switch (random.nextInt(8)) {
            case 5 -> rename(type.name, type.name + "Named", type.members);
            case 6 -> {
                type.isNumbered = !type.isNumbered;
                tell("%s is numbered by hand or not any more", type.name);
            }
            case 0 -> {
                newCase(type);
                tell("%s gets a case", type.name);
            }
            case 1 -> remove(type, member -> true);
            case 2 -> swap(type.name, type.members);
            case 3 -> {
                if (type.members.stream().noneMatch(Member::isUnknown)) {
                    type.members.add(new Member(type.name + "New" + type.next++, 0, "", false, true));
                    tell("%s gets an unknown", type.name);
                } else {
                    remove(type, Member::isUnknown);
                }
            }
            case 4 -> {
                if (type.members.stream().noneMatch(Member::isUnknown)) {
                    markUnknown(type);
                }
            }
            default -> retype(type.name, type.members);
        }
    }

    private void remove(Type type, Predicate<Member> which) {
        List<Member> candidates = type.members.stream().filter(which).toList();
        if (type.members.size() > 1 && !candidates.isEmpty()) {
            Member gone = pick(candidates);
            type.members.remove(gone);
            tell("%s loses %s", type.name, gone);
        }
    }

    private void markUnknown(Type type) {
        int at = random.nextInt(type.members.size());
        Member old = type.members.get(at);
        type.members.set(at, new Member(old.name, 0, "", false, true));
        tell("%s.%s stands for the unknown", type.name, old.name);
    }

    private void changeCall(Call call) {
        switch (random.nextInt(7)) {
            case 5 -> {
                if (!call.parameters.isEmpty()) {
                    rename(call.name, "q", call.parameters);
                }
            }
            case 0 -> {
                if (call.stream.isEmpty()) {
                    Member come = parameter(call);
                    call.parameters.add(random.nextInt(4) == 0 ? 0 : call.parameters.size(), come);
                    tell("%s gets %s", call.name, come);
                }
            }
            case 1 -> {
                if (!call.parameters.isEmpty()) {
                    tell("%s loses %s", call.name, call.parameters.remove(random.nextInt(call.parameters.size())));
                }
            }
            case 2 -> swap(call.name, call.parameters);
            case 3 -> {
                Result old = call.result;
                call.result = random.nextInt(3) == 0 || old.type.equals("void")
                        ? result()
                        : new Result(
                                old.in.isEmpty() ? near(old.type, true) : near(old.type, false),
                                old.in,
                                old.isNullable);
                if (!old.equals(call.result)) {
                    tell("%s: %s becomes %s", call.name, old, call.result);
                }
            }
            case 4 -> {
                if (!call.result.type.equals("void") && !call.result.in.equals("Flow.Publisher")) {
                    call.result = new Result(call.result.type, call.result.in, !call.result.isNullable);
                    tell("the result of %s may be null or not any more", call.name);
                }
            }
            default -> {
                if (!call.parameters.isEmpty()) {
                    retype(call.name, call.parameters);
                }
            }
        }
    }

    private void swap(String of, List<Member> members) {
        if (members.size() > 1) {
            int one = random.nextInt(members.size());
            int other = random.nextInt(members.size());
            Member moved = members.get(one);
            members.set(one, members.get(other));
            members.set(other, moved);
            if (one != other) {
                tell("%s: %s and %s change places", of, moved.name, members.get(one).name);
            }
        }
    }

    private void rename(String of, String name, List<Member> members) {
        int at = random.nextInt(members.size());
        Member old = members.get(at);
        Member now = old.withName(name + random.nextInt(1_000));
        if (members.stream().noneMatch(each -> each.name.equals(now.name))) {
            members.set(at, now);
            tell("%s.%s is %s", of, old.name, now.name);
        }
    }

    private void retype(String of, List<Member> members) {
        int at = random.nextInt(members.size());
        Member old = members.get(at);
        if (old.type.isEmpty()) {
            return;
        }
        Member now = old.withType(near(old.type, true));
        members.set(at, now);
        if (!now.type.equals(old.type)) {
            tell("%s.%s: %s becomes %s", of, old.name, old.type, now.type);
        }
    }

    private void tell(String text, Object... of) {
        told.add(text.formatted(of));
    }

    /** Returns another type that somebody may believe to be as good as this one. */
    private String near(String type, boolean mayBePrimitive) {
        if (random.nextInt(4) == 0) {
            return mayBePrimitive ? type(2) : object(2);
        }
        for (String holder : HOLDERS) {
            if (type.startsWith(holder + "<")) {
                return nearHolder(holder, type.substring(holder.length() + 1, type.length() - 1));
            }
        }
        if (type.startsWith("G<")) {
            return "G<" + nearElement(type.substring(2, type.length() - 1)) + ">";
        }
        if (random.nextInt(3) == 0) {
            return pick("List", "Optional", "Set") + "<" + boxed(type) + ">";
        }
        if (WHOLE_NUMBERS.contains(type) || type.matches("E\\d")) {
            String near = random.nextInt(3) == 0 ? "E" + random.nextInt(ENUMS) : pick(WHOLE_NUMBERS);
            return mayBePrimitive ? near : boxed(near);
        }
        if (type.equals("String") || type.equals("byte[]") || type.equals("UUID") || type.equals("BigInteger")) {
            return pick("String", "byte[]", "UUID", "BigInteger");
        }
        if (type.matches("[RS]\\d")) {
            return pick("R", "S") + random.nextInt(2);
        }
        int place = PRIMITIVES.indexOf(type);
        return place >= 0 ? BOXES.get(place) : mayBePrimitive ? type(1) : object(1);
    }

    private String nearHolder(String holder, String of) {
        if (holder.equals("Map")) {
            int comma = 0;
            for (int depth = 0; of.charAt(comma) != ',' || depth > 0; comma++) {
                depth += of.charAt(comma) == '<' ? 1 : of.charAt(comma) == '>' ? -1 : 0;
            }
            String key = of.substring(0, comma);
            String value = of.substring(comma + 1);
            return random.nextBoolean()
                    ? "Map<" + compared(nearElement(key)) + "," + value + ">"
                    : "Map<" + key + "," + nearElement(value) + ">";
        }
        if (random.nextInt(3) == 0) {
            return holder + "<" + (holder.equals("Set") ? compared(nearElement(of)) : nearElement(of)) + ">";
        }
        String other = pick("List", "Collection", "Set", "Set", "Optional", "");
        return other.isEmpty() ? of : other + "<" + (other.equals("Set") ? compared(of) : of) + ">";
    }

    private String nearElement(String type) {
        String near = near(type, false);
        while (near.startsWith("Optional<")) {
            near = near.substring("Optional<".length(), near.length() - 1);
        }
        return near;
    }

    private static String compared(String type) {
        return type.equals("byte[]") ? "String" : type;
    }

    private static String boxed(String type) {
        int place = PRIMITIVES.indexOf(type);
        return place < 0 ? type : BOXES.get(place);
    }

    /** Returns the source of this version's class {@code Types}, with the interface {@code Service} in it. */
    public String source() {
        StringBuilder text = new StringBuilder("package " + packageName + ";\n"
                + "import java.math.*; import java.time.*; import java.util.*; import java.util.concurrent.*;\n"
                + "import dev.rpcx.schema.*; import world.Nullable;\npublic class Types {\n"
                + "public record G<A>(A a, List<A> b) {}\n");
        for (Type type : enums) {
            List<String> constants = new ArrayList<>();
            for (Member each : type.members) {
                boolean isByName = each.name.equals("UNKNOWN");
                constants.add((each.isUnknown ? isByName ? "" : "@Unknown " : number(type, each)) + each.name);
            }
            text.append("public enum " + type.name + " { " + String.join(", ", constants) + " }\n");
        }
        for (Type type : sealed) {
            List<String> names = type.members.stream().map(Member::name).toList();
            text.append("public sealed interface " + type.name + " permits " + String.join(", ", names) + " {}\n");
            for (Member each : type.members) {
                text.append((each.isUnknown ? "@Unknown " : number(type, each)) + "public record " + each.name + "("
                        + (each.isUnknown ? "" : each.type + " v") + ") implements " + type.name + " {}\n");
            }
        }
        records.forEach(type -> text.append(type.isClass ? asClass(type) : asRecord(type)));
        text.append("public interface Service {\n");
        for (Call call : calls) {
            List<String> parameters = new ArrayList<>();
            call.parameters.forEach(each -> parameters.add(
                    (call.isNumbered ? "@Field(" + each.number + ") " : "") + typed(each) + " " + each.name));
            if (!call.stream.isEmpty()) {
                parameters.add("Flow.Publisher<" + call.stream + "> items");
            }
            text.append(result(call.result) + " " + call.name + "(" + String.join(", ", parameters) + ");\n");
        }
        return text.append("}\n}\n").toString();
    }

    private static String result(Result result) {
        String type = result.isNullable ? nullable(result.type) : result.type;
        return result.in.isEmpty() ? type : result.in + "<" + type + ">";
    }

    private static String typed(Member member) {
        return member.isNullable ? nullable(member.type) : member.type;
    }

    private static String nullable(String type) {
        return type.equals("byte[]") ? "byte @Nullable []" : "@Nullable " + type;
    }

    private static String number(Type type, Member member) {
        return type.isNumbered ? "@Field(" + member.number + ") " : "";
    }

    private static String asRecord(Type type) {
        List<String> components = new ArrayList<>();
        type.members.forEach(each -> components.add(number(type, each) + typed(each) + " " + each.name));
        return "public record " + type.name + "(" + String.join(", ", components) + ") {}\n";
    }

    private static String asClass(Type type) {
        StringBuilder text = new StringBuilder("public static class " + type.name + " {\n");
        for (Member each : type.members) {
            text.append(number(type, each) + "private " + typed(each) + " " + each.name + ";\n");
            text.append("public " + each.type + " " + each.name + "() { return " + each.name + "; }\n");
            text.append("public void " + each.name + "(" + each.type + " v) { " + each.name + " = v; }\n");
        }
        text.append("public boolean equals(Object o) { return o instanceof " + type.name + " r");
        type.members.forEach(each -> text.append(" && Objects.deepEquals(" + each.name + ", r." + each.name + ")"));
        text.append("; }\npublic int hashCode() { return Objects.hash(");
        text.append(String.join(", ", type.members.stream().map(Member::name).toList()));
        return text.append("); }\n}\n").toString();
    }
}
