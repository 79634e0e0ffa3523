package dev.rpcx.processor;

import dev.rpcx.internal.schema.Accessors;
import dev.rpcx.internal.schema.Cases;
import dev.rpcx.internal.schema.ErrorType;
import dev.rpcx.internal.schema.Refusals;
import dev.rpcx.schema.Field;
import dev.rpcx.schema.Unknown;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.concurrent.Future;
import java.util.function.BiConsumer;
import javax.lang.model.element.Element;
import javax.lang.model.element.ElementKind;
import javax.lang.model.element.ExecutableElement;
import javax.lang.model.element.Modifier;
import javax.lang.model.element.RecordComponentElement;
import javax.lang.model.element.TypeElement;
import javax.lang.model.element.VariableElement;
import javax.lang.model.type.ArrayType;
import javax.lang.model.type.DeclaredType;
import javax.lang.model.type.ExecutableType;
import javax.lang.model.type.TypeKind;
import javax.lang.model.type.TypeMirror;
import javax.lang.model.type.WildcardType;
import javax.lang.model.util.ElementFilter;
import javax.lang.model.util.Elements;
import javax.lang.model.util.Types;
import org.jspecify.annotations.Nullable;

/**
 * Checks at build time whether types can be mapped to Protobuf, by the rules that {@code Schema} applies at start. Each
 * error names the component or type that is wrong. The compiler reports the error at that component or type if its
 * source is being compiled. Lock files, which keep the numbers of earlier releases, are not checked, since the compiler
 * cannot see lock files. {@code AgreementTest} checks that this class refuses the types that clients and servers
 * refuse, with the same words.
 *
 * <p>This class is longer than 400 lines because it has a part for each part of {@code Schema}, and all parts share one
 * table of the types that were checked.
 */
final class TypeCheck {
    private static final Set<String> SIMPLE = Set.of(
            "java.lang.Boolean",
            "java.lang.Byte",
            "java.lang.Short",
            "java.lang.Character",
            "java.lang.Integer",
            "java.lang.Long",
            "java.lang.Float",
            "java.lang.Double",
            "java.lang.String",
            "java.math.BigInteger",
            "java.math.BigDecimal",
            "java.util.UUID",
            "java.net.URI",
            "java.util.Date",
            "java.time.Instant",
            "java.time.Duration",
            "java.time.LocalDate",
            "java.time.LocalDateTime",
            "java.time.LocalTime",
            "java.time.OffsetDateTime",
            "java.time.ZonedDateTime");

    private static final Set<String> STAGES = Set.of(
            "java.util.concurrent.CompletionStage", "java.util.concurrent.CompletableFuture", "dev.rpcx.RPCXFuture");

    private static final Set<String> LISTS = Set.of("java.util.List", "java.util.Collection", "java.util.Set");
    private static final Set<String> UNORDERED = Set.of("java.util.Collection", "java.util.Set", "java.util.Map");
    private static final String SET = "java.util.Set";
    private static final String MAP = "java.util.Map";

    /**
     * Largest allowed depth of type arguments within type arguments; a type without type arguments has the depth 1.
     * {@code MAX_DEPTH} of the schema's {@code Use} has the same value.
     */
    private static final int MAX_DEPTH = 16;

    private static final Set<String> UNKNOWNS = Set.of("UNKNOWN", "UNSPECIFIED", "UNRECOGNIZED");

    private final Types types;
    private final Elements elements;
    private final BiConsumer<Element, String> refusal;

    /**
     * Types of the components of each record or class, and of the cases of each sealed type. The key is the name of the
     * record, class or sealed type, with its type arguments.
     */
    private final Map<String, List<TypeMirror>> members = new HashMap<>();

    /**
     * Types, with their type arguments, whose check has begun. A type in this set is not checked again, so the check of
     * a type that contains itself ends.
     */
    private final Set<String> seen = new HashSet<>();

    /**
     * Classes that the configuration for native images contains. In a native image, no code can be generated, so RPCX
     * creates and reads objects of these classes by reflection.
     */
    private final Set<TypeElement> mapped = new LinkedHashSet<>();

    TypeCheck(Types types, Elements elements, BiConsumer<Element, String> refusal) {
        this.types = types;
        this.elements = elements;
        this.refusal = refusal;
    }

    Set<TypeElement> mapped() {
        return mapped;
    }

    boolean isPublisher(TypeMirror type) {
        return isA(type, Flow.Publisher.class) && types.isSameType(types.erasure(type), erased(Flow.Publisher.class));
    }

    private TypeMirror erased(Class<?> type) {
        return types.erasure(elements.getTypeElement(type.getCanonicalName()).asType());
    }

    private boolean isA(TypeMirror type, Class<?> wanted) {
        return type.getKind() == TypeKind.DECLARED && types.isSubtype(types.erasure(type), erased(wanted));
    }

    void parameter(TypeMirror type, String where, Element at) {
        if (isPublisher(type)) {
            items(type, where, at);
        } else if (isKnown(type, where, at)) {
            field(type, where, at);
        }
    }

    private void items(TypeMirror publisher, String where, Element at) {
        List<? extends TypeMirror> of = ((DeclaredType) publisher).getTypeArguments();
        if (of.isEmpty()) {
            refusal.accept(at, where + ": a stream without the type of its items (expected: Flow.Publisher<Type>)");
        } else if (isKnown(of.get(0), where, at)) {
            field(of.get(0), where, at);
        }
    }

    /**
     * Checks whether the state of an exception with {@code @RPCXError} can be sent, by the rules of {@link ErrorType}.
     * The names of parameters are not checked, since the compiler always knows them.
     */
    void error(TypeElement type) {
        String name = binary(type);
        List<ExecutableElement> constructors = ElementFilter.constructorsIn(type.getEnclosedElements());
        if (!isA(type.asType(), Throwable.class)) {
            refusal.accept(type, ErrorType.ofOther(name));
        } else if (type.getModifiers().contains(Modifier.ABSTRACT)) {
            refusal.accept(type, ErrorType.ofAbstract(name));
        } else if (type.getNestingKind().isNested() && !type.getModifiers().contains(Modifier.STATIC)) {
            refusal.accept(type, ErrorType.ofInner(name));
        } else if (constructors.size() != 1) {
            refusal.accept(type, ErrorType.ofConstructors(name, constructors.size()));
        } else {
            lineage(type).stream()
                    .filter(each -> !ErrorType.isOfJdk(binary(each)))
                    .forEach(mapped::add);
            List<? extends VariableElement> parameters = constructors.get(0).getParameters();
            for (VariableElement parameter : parameters) {
                if (!hasAccessor(type, parameter)) {
                    refusal.accept(
                            parameter,
                            ErrorType.withoutAccessor(
                                    name, parameter.getSimpleName().toString()));
                }
                member(
                        (DeclaredType) type.asType(),
                        parameter.asType(),
                        name + "." + parameter.getSimpleName(),
                        parameter);
            }
            numbers(parameters, name, false);
        }
    }

    private boolean hasAccessor(TypeElement in, VariableElement parameter) {
        List<String> names = Accessors.getters(
                parameter.getSimpleName().toString(), parameter.asType().getKind() == TypeKind.BOOLEAN);
        TypeMirror type = types.erasure(parameter.asType());
        return accessors(in).stream()
                .anyMatch(method -> names.contains(method.getSimpleName().toString())
                        && method.getParameters().isEmpty()
                        && types.isSameType(types.erasure(method.getReturnType()), type));
    }

    /** Returns whether an exception that a method declares has to be caught by its callers. */
    boolean isChecked(TypeMirror thrown) {
        return !isA(thrown, RuntimeException.class) && !isA(thrown, Error.class);
    }

    void result(TypeMirror type, String where, Element at) {
        TypeMirror content = type;
        if (type.getKind() == TypeKind.ERROR || !isKnown(type, where, at)) {
            return;
        }
        if (isPublisher(type)) {
            items(type, where, at);
            return;
        }
        boolean isStage = isA(type, CompletionStage.class);
        if (isA(type, Future.class) && !isStage) {
            refusal.accept(
                    at,
                    where + ": " + type + " is a future without a callback at its end (expected: CompletionStage,"
                            + " CompletableFuture or RPCXFuture)");
            return;
        }
        if (isStage) {
            if (!STAGES.contains(name(type))) {
                refusal.accept(
                        at, where + ": " + type + " (expected: CompletionStage, CompletableFuture or RPCXFuture)");
                return;
            }
            content = bound(((DeclaredType) type).getTypeArguments().get(0));
        }
        if (content.getKind() != TypeKind.VOID && !name(content).equals("java.lang.Void")) {
            field(content, where, at);
        }
    }

    private static String name(TypeMirror type) {
        return type.getKind() == TypeKind.DECLARED
                ? ((TypeElement) ((DeclaredType) type).asElement())
                        .getQualifiedName()
                        .toString()
                : "";
    }

    private void refuse(TypeMirror type, String where, Element at, String why) {
        refusal.accept(at, where + ": " + type + " cannot be mapped to Protobuf: " + why);
    }

    /**
     * Returns whether a type and all its type arguments are known, so that the schema can describe the type; reports an
     * error if not. For example, a {@code List} without a type argument is refused here. Whether the type can be mapped
     * to Protobuf is not checked. Returns true for a type that does not compile, since the compiler reports the error.
     */
    private boolean isKnown(TypeMirror given, String where, Element at) {
        if (given instanceof WildcardType wildcard && wildcard.getSuperBound() != null) {
            refuse(given, where, at, Refusals.NO_CLASS);
            return false;
        }
        TypeMirror type = bound(given);
        if (type.getKind() == TypeKind.TYPEVAR) {
            refusal.accept(at, where + ": what " + type + " stands for is not known here");
            return false;
        }
        if (type instanceof ArrayType array && isGeneric(array.getComponentType())) {
            refuse(type, where, at, Refusals.ARRAY);
            return false;
        }
        if (!(type instanceof DeclaredType declared) || type.getKind() == TypeKind.ERROR) {
            return true;
        }
        if (isRaw(declared)) {
            String name = declared.asElement().getSimpleName().toString();
            refusal.accept(at, where + ": " + name + " without its types (expected: " + name + "<…>)");
            return false;
        }
        for (TypeMirror argument : declared.getTypeArguments()) {
            if (!isKnown(argument, where, at)) {
                return false;
            }
        }
        if (depth(declared) > MAX_DEPTH) {
            refusal.accept(
                    at,
                    where + ": type arguments nested more than " + MAX_DEPTH
                            + " deep (expected: a type that does not contain itself with ever longer type arguments)");
            return false;
        }
        return true;
    }

    private static boolean isRaw(DeclaredType type) {
        return type.getTypeArguments().size()
                != ((TypeElement) type.asElement()).getTypeParameters().size();
    }

    private static boolean isGeneric(TypeMirror component) {
        return component.getKind() == TypeKind.TYPEVAR
                || component instanceof ArrayType array && isGeneric(array.getComponentType())
                || component instanceof DeclaredType declared
                        && !declared.getTypeArguments().isEmpty();
    }

    /** Returns a class and all its superclasses except {@code Object}. The class itself is the first element. */
    static List<TypeElement> lineage(TypeElement type) {
        List<TypeElement> found = new ArrayList<>();
        for (TypeElement c = type; c != null && !c.getQualifiedName().contentEquals("java.lang.Object"); ) {
            found.add(c);
            c = c.getSuperclass() instanceof DeclaredType parent ? (TypeElement) parent.asElement() : null;
        }
        return found;
    }

    /**
     * Checks whether the type of a parameter, a component or a result can be mapped. An {@code Optional} is allowed.
     */
    private void field(TypeMirror given, String where, Element at) {
        TypeMirror type = bound(given);
        if (name(type).equals(Optional.class.getName())) {
            arguments((DeclaredType) type, 1, where, at);
        } else {
            element(type, where, at);
        }
    }

    private TypeMirror bound(TypeMirror type) {
        if (!(type instanceof WildcardType wildcard) || wildcard.getSuperBound() != null) {
            return type;
        }
        TypeMirror extended = wildcard.getExtendsBound();
        return extended == null ? elements.getTypeElement("java.lang.Object").asType() : extended;
    }

    /**
     * Checks whether a type can be mapped, and refuses an {@code Optional}. Only the whole type of a parameter, a
     * component, a result or a stream's items may be an {@code Optional}, and {@code field} checks such a type.
     */
    private void element(TypeMirror given, String where, Element at) {
        TypeMirror type = bound(given);
        if (type.getKind().isPrimitive()) {
            return;
        }
        if (type instanceof ArrayType array) {
            if (array.getComponentType().getKind() != TypeKind.BYTE) {
                refuse(type, where, at, Refusals.ARRAY);
            }
            return;
        }
        if (!(type instanceof DeclaredType declared) || type.getKind() == TypeKind.ERROR) {
            if (type.getKind() != TypeKind.ERROR) {
                refuse(type, where, at, Refusals.NO_CLASS);
            }
            return;
        }
        String name = name(type);
        if (SIMPLE.contains(name)) {
            return;
        }
        if (name.equals(Optional.class.getName())) {
            refusal.accept(at, Refusals.optionalInside(where));
        } else if (LISTS.contains(name)) {
            arguments(declared, 1, where, at);
            if (name.equals(SET)) {
                refuseBytesAsKey(declared, where, at);
            }
        } else if (name.equals(MAP)) {
            arguments(declared, 2, where, at);
            refuseBytesAsKey(declared, where + ", key", at);
        } else {
            TypeElement element = (TypeElement) declared.asElement();
            if (element.getKind() == ElementKind.ENUM) {
                enumType(element);
            } else {
                message(declared, element, where, at);
            }
        }
    }

    private void arguments(DeclaredType container, int count, String where, Element at) {
        List<? extends TypeMirror> arguments = container.getTypeArguments();
        for (int i = 0; i < count; i++) {
            element(arguments.get(i), count == 1 ? where : where + (i == 0 ? ", key" : ", value"), at);
        }
    }

    /**
     * Reports an error if the elements of a set or the keys of a map are {@code byte[]}. Arrays with equal content are
     * not equal, so nobody could find an element or a key by its content.
     */
    private void refuseBytesAsKey(DeclaredType container, String where, Element at) {
        if (bound(container.getTypeArguments().get(0)) instanceof ArrayType array
                && array.getComponentType().getKind() == TypeKind.BYTE) {
            refusal.accept(at, Refusals.bytesAsKey(where));
        }
    }

    private int depth(TypeMirror type) {
        int deepest = 0;
        if (bound(type) instanceof DeclaredType declared) {
            for (TypeMirror argument : declared.getTypeArguments()) {
                deepest = Math.max(deepest, depth(argument));
            }
        }
        return deepest + 1;
    }

    private void message(DeclaredType type, TypeElement element, String where, Element at) {
        String why = refusal(type, element);
        if (why != null) {
            refuse(type, where, at, why);
            return;
        }
        if (!seen.add(type.toString())) {
            return;
        }
        mapped.add(element);
        if (element.getKind() == ElementKind.RECORD) {
            record(type, element);
        } else if (isSealed(element)) {
            oneOf(type, element);
        } else {
            bean(type, element);
        }
    }

    private void member(DeclaredType of, TypeMirror type, String where, Element at) {
        members.computeIfAbsent(of.toString(), none -> new ArrayList<>()).add(type);
        if (isKnown(type, where, at)) {
            field(type, where, at);
        }
    }

    /**
     * Returns whether equal values of a type can be sent as different bytes. This is so for a set, a map, a collection,
     * and a type that contains one, since the order of the elements can differ. The type must have been checked before.
     */
    boolean mayHaveNoOrder(TypeMirror type) {
        return mayHaveNoOrder(type, new HashSet<>());
    }

    private boolean mayHaveNoOrder(TypeMirror given, Set<String> met) {
        if (!(bound(given) instanceof DeclaredType type) || !met.add(type.toString())) {
            return false;
        }
        String name = name(type);
        List<? extends TypeMirror> parts = LISTS.contains(name) || name.equals(Optional.class.getName())
                ? type.getTypeArguments()
                : members.getOrDefault(type.toString(), List.of());
        return UNORDERED.contains(name) || parts.stream().anyMatch(part -> mayHaveNoOrder(part, met));
    }

    private static boolean isSealed(TypeElement element) {
        return element.getModifiers().contains(Modifier.SEALED)
                && (element.getKind().isInterface() || element.getModifiers().contains(Modifier.ABSTRACT));
    }

    private @Nullable String refusal(DeclaredType type, TypeElement element) {
        if (isA(type, Collection.class) || isA(type, Map.class)) {
            return Refusals.COLLECTION;
        }
        String name = element.getQualifiedName().toString();
        if (Refusals.isOfJdk(name)) {
            return Refusals.ofJdk(name);
        }
        boolean isAbstract =
                element.getKind().isInterface() || element.getModifiers().contains(Modifier.ABSTRACT);
        return isAbstract && !element.getModifiers().contains(Modifier.SEALED) ? Refusals.ABSTRACT : null;
    }

    private String binary(TypeElement element) {
        return elements.getBinaryName(element).toString();
    }

    private void record(DeclaredType type, TypeElement element) {
        String raw = binary(element);
        for (RecordComponentElement component : element.getRecordComponents()) {
            ExecutableType accessor = (ExecutableType) types.asMemberOf(type, component.getAccessor());
            member(type, accessor.getReturnType(), raw + "." + component.getSimpleName(), component);
            Field onAccessor = component.getAccessor().getAnnotation(Field.class);
            if (onAccessor != null && !onAccessor.equals(component.getAnnotation(Field.class))) {
                strayNumber(component.getAccessor());
            }
        }
        numbers(element.getRecordComponents(), raw, false);
    }

    private void strayNumber(Element member) {
        if (member.getEnclosingElement() instanceof TypeElement declaring) {
            String name = member.getSimpleName().toString();
            boolean isMethod = member.getKind() == ElementKind.METHOD;
            refusal.accept(member, Accessors.strayNumber(binary(declaring), name, isMethod));
        }
    }

    private void oneOf(DeclaredType type, TypeElement element) {
        String raw = binary(element);
        List<TypeElement> cases = new ArrayList<>();
        permitted(element, cases);
        List<TypeElement> numbered = new ArrayList<>();
        Map<String, TypeElement> named = new HashMap<>();
        TypeElement unknown = null;
        for (TypeElement each : cases) {
            String where = raw + ", case " + binary(each);
            if (each.getAnnotation(Unknown.class) != null) {
                mapped.add(each);
                if (each.getAnnotation(Field.class) != null) {
                    refusal.accept(each, Cases.numbered(raw, binary(each)));
                }
                if (each.getKind() != ElementKind.RECORD
                        || !each.getRecordComponents().isEmpty()) {
                    refusal.accept(each, binary(each) + ": an unknown case must be a record without components");
                } else if (unknown != null) {
                    twoUnknown(raw, binary(unknown), binary(each), each);
                }
                unknown = each;
                continue;
            }
            numbered.add(each);
            String field = Cases.field(each.getSimpleName().toString());
            TypeElement namesake = named.putIfAbsent(field, each);
            if (namesake != null) {
                refusal.accept(each, Cases.namesakes(raw, binary(namesake), binary(each), field));
            }
            if (each.getKind() == ElementKind.ENUM) {
                refusal.accept(each, where + ": expected a record or a class with accessors");
            } else if (!each.getTypeParameters().isEmpty()) {
                refusal.accept(each, where + ": a generic case cannot be mapped");
            } else {
                member(type, each.asType(), where, each);
            }
        }
        numbers(numbered, raw, false);
    }

    private void twoUnknown(String of, String one, String other, Element at) {
        refusal.accept(
                at,
                of + ": " + one + " and " + other
                        + " are both annotated @Unknown (expected: one that stands for what is not known)");
    }

    private void permitted(TypeElement sealed, List<TypeElement> into) {
        for (TypeMirror each : sealed.getPermittedSubclasses()) {
            TypeElement element = (TypeElement) ((DeclaredType) each).asElement();
            if (isSealed(element)) {
                mapped.add(element);
                permitted(element, into);
            } else if (!into.contains(element)) {
                into.add(element);
            }
        }
    }

    private void enumType(TypeElement element) {
        if (!seen.add(element.toString())) {
            return;
        }
        mapped.add(element);
        List<Element> numbered = new ArrayList<>();
        Element unknown = null;
        boolean isDeclared = false;
        for (Element constant : element.getEnclosedElements()) {
            if (constant.getKind() == ElementKind.ENUM_CONSTANT) {
                boolean declared = constant.getAnnotation(Unknown.class) != null;
                if (declared && isDeclared && unknown != null) {
                    twoUnknown(
                            binary(element),
                            unknown.getSimpleName().toString(),
                            constant.getSimpleName().toString(),
                            constant);
                }
                isDeclared |= declared;
                if (declared
                        || unknown == null
                                && UNKNOWNS.contains(constant.getSimpleName().toString())) {
                    unknown = constant;
                }
                numbered.add(constant);
            }
        }
        numbered.remove(unknown);
        Field ofUnknown = unknown == null ? null : unknown.getAnnotation(Field.class);
        if (unknown != null && ofUnknown != null && ofUnknown.value() != 0) {
            refusal.accept(
                    unknown,
                    Cases.numbered(binary(element), unknown.getSimpleName().toString()));
        }
        numbers(numbered, binary(element), true);
        for (Element constant : numbered) {
            Field field = constant.getAnnotation(Field.class);
            if (unknown != null && field != null && field.value() == 0) {
                refusal.accept(
                        constant,
                        binary(element) + "." + constant.getSimpleName() + ": number 0 is taken by "
                                + unknown.getSimpleName() + ", which stands for the unknown");
            }
        }
    }

    private void bean(DeclaredType type, TypeElement element) {
        String raw = binary(element);
        boolean isInner =
                element.getNestingKind().isNested() && !element.getModifiers().contains(Modifier.STATIC);
        // the constructor of an inner class also takes the object around it
        List<ExecutableElement> constructors =
                isInner ? List.of() : ElementFilter.constructorsIn(element.getEnclosedElements());
        if (checkConstructed(type, element, constructors)) {
            return;
        }
        if (!canBeEmpty(constructors)) {
            refusal.accept(element, Accessors.withoutConstructor(raw));
            return;
        }
        for (DeclaredType parent = superclass(type); parent != null; parent = superclass(parent)) {
            if (!isRaw(parent) && !isKnown(parent, raw, element)) {
                return;
            }
        }
        List<Element> numbered = new ArrayList<>();
        List<String> names = new ArrayList<>();
        boolean isWhole = true;
        Map<String, VariableElement> fields = new HashMap<>();
        Map<ExecutableElement, String> owners = new HashMap<>();
        for (VariableElement field : ElementFilter.fieldsIn(allMembers(element))) {
            String name = field.getSimpleName().toString();
            // if a subclass has a field of the same name, the superclass's field is left out, since the accessors
            // belong to the subclass's field
            if (isLeftOut(field) || fields.putIfAbsent(name, field) != null) {
                continue;
            }
            ExecutableElement getter = getter(element, field);
            ExecutableElement setter = setter(element, field);
            if (getter == null) {
                isWhole &= refuseWithoutGetter(element, field, raw);
            } else if (setter != null && field.getModifiers().contains(Modifier.FINAL)) {
                refusal.accept(field, raw + "." + name + ": " + Accessors.ofFinalField());
                isWhole = false;
            } else if (setter == null) {
                refusal.accept(field, raw + "." + name + ": " + Accessors.alone(true));
                isWhole = false;
            } else {
                member(type, typeOf(getter, type), raw + "." + name, field);
                // A subclass may override the getter with a more specific return type. RPCX then calls the override.
                // The @Field of the override counts; if the override has none, the @Field of the Java field counts.
                ExecutableElement called = getter(element, getter);
                numbered.add(called.getAnnotation(Field.class) != null ? called : field);
                names.add(name);
                isWhole &= isAlone(owners, getter, name, raw, field) && isAlone(owners, setter, name, raw, field);
            }
        }
        if (numbered.isEmpty() && isWhole) {
            refusal.accept(element, raw + ": a class without any property that has a getter and a setter");
        }
        if (isWhole) {
            refuseStrayNumbers(element, numbered);
        }
        numbers(numbered, names, raw, false);
    }

    private void refuseStrayNumbers(TypeElement element, List<Element> read) {
        for (Element member : allMembers(element)) {
            if (member.getAnnotation(Field.class) != null && !read.contains(member)) {
                strayNumber(member);
            }
        }
    }

    /** Returns whether a field is never a component, since it is static or transient. */
    private static boolean isLeftOut(VariableElement field) {
        return field.getModifiers().contains(Modifier.STATIC)
                || field.getModifiers().contains(Modifier.TRANSIENT);
    }

    private static boolean canBeEmpty(List<ExecutableElement> constructors) {
        return constructors.stream().anyMatch(each -> each.getParameters().isEmpty());
    }

    /**
     * Checks a class if it is made by a constructor that takes the values of its fields, by the rules of
     * {@code Constructed}.
     *
     * @return false if the class is no such class
     */
    private boolean checkConstructed(DeclaredType type, TypeElement element, List<ExecutableElement> constructors) {
        List<VariableElement> fields = new ArrayList<>();
        List<VariableElement> others = new ArrayList<>();
        List<ExecutableElement> getters = new ArrayList<>();
        boolean hasSetters = true;
        for (VariableElement field : ElementFilter.fieldsIn(element.getEnclosedElements())) {
            ExecutableElement getter = isLeftOut(field) ? null : getterIn(element, field);
            if (getter != null) {
                fields.add(field);
                getters.add(getter);
                hasSetters &= !field.getModifiers().contains(Modifier.FINAL) && setter(element, field) != null;
            } else if (!isLeftOut(field)) {
                others.add(field);
            }
        }
        if (fields.isEmpty() || inheritsComponents(element) || hasSetters && canBeEmpty(constructors)) {
            return false;
        }
        for (ExecutableElement constructor : constructors) {
            if (takes(constructor, fields)) {
                constructed(type, element, constructor, fields, getters, others);
                return true;
            }
        }
        return false;
    }

    private boolean takes(ExecutableElement constructor, List<VariableElement> fields) {
        List<? extends VariableElement> parameters = constructor.getParameters();
        boolean isAlike = parameters.size() == fields.size();
        for (int i = 0; isAlike && i < fields.size(); i++) {
            isAlike = types.isSameType(
                    types.erasure(parameters.get(i).asType()),
                    types.erasure(fields.get(i).asType()));
        }
        return isAlike;
    }

    private boolean inheritsComponents(TypeElement element) {
        return lineage(element).stream()
                .skip(1)
                .flatMap(parent -> ElementFilter.fieldsIn(parent.getEnclosedElements()).stream())
                .anyMatch(field -> !isLeftOut(field) && getterIn(element, field) != null);
    }

    private void constructed(
            DeclaredType type,
            TypeElement element,
            ExecutableElement constructor,
            List<VariableElement> fields,
            List<ExecutableElement> getters,
            List<VariableElement> others) {
        String raw = binary(element);
        List<String> names = names(fields);
        List<String> taken = names(constructor.getParameters());
        if (!taken.equals(names) && !isMadeUp(taken)) {
            refusal.accept(constructor, Accessors.ofOtherNames(raw, taken, names));
            return;
        }
        boolean isWhole = true;
        for (VariableElement field : others) {
            isWhole &= refuseWithoutGetter(element, field, raw);
        }
        List<Element> numbered = new ArrayList<>();
        List<Element> read = new ArrayList<>();
        for (int i = 0; i < fields.size(); i++) {
            VariableElement field = fields.get(i);
            member(type, typeOf(getters.get(i), type), raw + "." + names.get(i), field);
            List<Element> places = List.of(constructor.getParameters().get(i), getters.get(i), field);
            Element annotated = places.stream()
                    .filter(place -> place.getAnnotation(Field.class) != null)
                    .findFirst()
                    .orElse(field);
            @Nullable Field number = annotated.getAnnotation(Field.class);
            numbered.add(annotated);
            places.stream()
                    .filter(place -> Objects.equals(number, place.getAnnotation(Field.class)))
                    .forEach(read::add);
        }
        if (isWhole) {
            refuseStrayNumbers(element, read);
        }
        numbers(numbered, names, raw, false);
    }

    /**
     * Returns whether the names of parameters are those that the compiler makes up for a class file without them. The
     * order of such parameters is checked at start.
     */
    private static boolean isMadeUp(List<String> names) {
        for (int i = 0; i < names.size(); i++) {
            if (!names.get(i).equals("arg" + i)) {
                return false;
            }
        }
        return true;
    }

    private static List<String> names(List<? extends Element> elements) {
        return elements.stream().map(each -> each.getSimpleName().toString()).toList();
    }

    /**
     * Reports an error if the value of a field without a getter would be lost, since the field has a setter, or
     * accessors of another type. A method of the field's own name is no setter of a final field.
     *
     * @return false if an error was reported
     */
    private boolean refuseWithoutGetter(TypeElement element, VariableElement field, String raw) {
        ExecutableElement setter = setter(element, field);
        boolean isFinal = field.getModifiers().contains(Modifier.FINAL);
        if (setter == null || isFinal && setter.getSimpleName().equals(field.getSimpleName())) {
            return refuseOtherTypes(element, field, raw);
        }
        refusal.accept(
                field,
                raw + "." + field.getSimpleName() + ": "
                        + (isFinal ? Accessors.ofFinalField() : Accessors.alone(false)));
        return false;
    }

    private boolean isAlone(
            Map<ExecutableElement, String> owners, ExecutableElement accessor, String name, String raw, Element at) {
        String other = owners.putIfAbsent(accessor, name);
        if (other != null) {
            refusal.accept(
                    at,
                    raw + "." + name + ": " + accessor.getSimpleName() + "() is also the accessor of " + other
                            + " (expected: one property for each accessor)");
        }
        return other == null;
    }

    private @Nullable DeclaredType superclass(DeclaredType type) {
        return types.directSupertypes(type).stream()
                .map(DeclaredType.class::cast)
                .filter(parent ->
                        parent.asElement().getKind().isClass() && !name(parent).equals("java.lang.Object"))
                .findFirst()
                .orElse(null);
    }

    /**
     * Returns the type of a getter's result. The type arguments of {@code type} replace the type variables in the
     * result. But if an interface or a raw superclass declares the getter, returns the type as it stands in that
     * declaration.
     */
    private TypeMirror typeOf(ExecutableElement getter, DeclaredType type) {
        for (DeclaredType c = type; c != null; c = superclass(c)) {
            if (c.asElement().equals(getter.getEnclosingElement())) {
                return isRaw(c)
                        ? getter.getReturnType()
                        : ((ExecutableType) types.asMemberOf(c, getter)).getReturnType();
            }
        }
        return getter.getReturnType();
    }

    /**
     * Returns the fields and methods of a class and its superclasses, including overridden methods. Adds the class and
     * its superclasses to {@code mapped}, the set of classes for native images.
     */
    private List<Element> allMembers(TypeElement element) {
        List<Element> members = new ArrayList<>();
        for (TypeElement c : lineage(element)) {
            for (Element member : c.getEnclosedElements()) {
                if (member.getKind().isField() || member.getKind() == ElementKind.METHOD) {
                    members.add(member);
                }
            }
            mapped.add(c);
        }
        return members;
    }

    /**
     * Reports an error if a field has a getter or a setter whose type is not the type of the field. This method does
     * not compare types. So it must be called only for a field that has neither a getter nor a setter of its own type.
     *
     * @return false if an error was reported
     */
    private boolean refuseOtherTypes(TypeElement in, VariableElement field, String raw) {
        String name = field.getSimpleName().toString();
        boolean isBoolean = field.asType().getKind() == TypeKind.BOOLEAN;
        String other = named(in, name, Accessors.getters(name, isBoolean), 0);
        if (other == null) {
            other = named(in, name, Accessors.setters(name, isBoolean), 1);
        }
        if (other != null) {
            refusal.accept(field, raw + "." + name + ": " + Accessors.ofOtherType(other));
        }
        return other == null;
    }

    private @Nullable String named(TypeElement in, String field, List<String> names, int parameters) {
        return accessors(in).stream()
                .filter(method -> method.getParameters().size() == parameters
                        && (parameters > 0 || method.getReturnType().getKind() != TypeKind.VOID))
                .map(method -> method.getSimpleName().toString())
                .filter(name -> names.contains(name) && !name.equals(field))
                .findFirst()
                .orElse(null);
    }

    /**
     * Returns the getter of a field, that is, a public method with the name of a getter and the type of the field; null
     * if there is none. Looks first in the mapped class {@code in}, and after that in the class that declares the
     * field. The second class is needed if a subclass overrides the getter with a more specific return type. In this
     * case, only the class that declares the field has a method with the field's type.
     */
    private @Nullable ExecutableElement getter(TypeElement in, VariableElement field) {
        for (TypeElement c : List.of(in, (TypeElement) field.getEnclosingElement())) {
            ExecutableElement getter = getterIn(c, field);
            if (getter != null) {
                return getter;
            }
        }
        return null;
    }

    private @Nullable ExecutableElement getterIn(TypeElement c, VariableElement field) {
        TypeMirror type = types.erasure(field.asType());
        List<String> names = Accessors.getters(
                field.getSimpleName().toString(), field.asType().getKind() == TypeKind.BOOLEAN);
        for (String name : names) {
            for (ExecutableElement method : accessors(c)) {
                if (method.getSimpleName().contentEquals(name)
                        && method.getParameters().isEmpty()
                        && types.isSameType(types.erasure(method.getReturnType()), type)) {
                    return method;
                }
            }
        }
        return null;
    }

    /**
     * Returns the method that runs if the getter {@code found} is called on an object of the mapped class {@code in}.
     * The result is the override that {@code in} declares or inherits. If there is no override, the result is
     * {@code found}.
     */
    private ExecutableElement getter(TypeElement in, ExecutableElement found) {
        return accessors(in).stream()
                .filter(method -> method.getSimpleName().equals(found.getSimpleName())
                        && method.getParameters().isEmpty())
                .findFirst()
                .orElse(found);
    }

    private @Nullable ExecutableElement setter(TypeElement in, VariableElement field) {
        TypeMirror type = types.erasure(field.asType());
        List<ExecutableElement> methods = new ArrayList<>(accessors(in));
        // The setters of superclasses are searched too, even if a subclass overrides them. For example, Base<T> has a
        // field and a setter of type T, and its subclass overrides the setter with a parameter of type String. Then
        // only the setter of Base has the type of the field. A call of this setter runs the override, by a bridge
        // method.
        lineage(in).forEach(c -> methods.addAll(publicOnes(c.getEnclosedElements())));
        for (String name : Accessors.setters(
                field.getSimpleName().toString(), field.asType().getKind() == TypeKind.BOOLEAN)) {
            for (ExecutableElement method : methods) {
                if (method.getSimpleName().contentEquals(name)
                        && method.getParameters().size() == 1
                        && types.isSameType(
                                types.erasure(method.getParameters().get(0).asType()), type)) {
                    return method;
                }
            }
        }
        return null;
    }

    private List<ExecutableElement> accessors(TypeElement in) {
        return publicOnes(elements.getAllMembers(in));
    }

    private static List<ExecutableElement> publicOnes(List<? extends Element> of) {
        return ElementFilter.methodsIn(of).stream()
                .filter(method -> method.getModifiers().contains(Modifier.PUBLIC)
                        && !method.getModifiers().contains(Modifier.STATIC))
                .toList();
    }

    /**
     * Checks the {@link Field} numbers of parameters, record components, cases of a sealed type, or constants of an
     * enum. Errors name a member by its simple name.
     *
     * @param ofEnum whether the members are constants of an enum, for which every number from 0 is allowed
     */
    void numbers(List<? extends Element> members, String where, boolean ofEnum) {
        numbers(members, names(members), where, ofEnum);
    }

    /**
     * Checks the {@link Field} numbers of members, such as parameters, components or constants. Either all members or
     * none must have a number, no two members are allowed to have the same number, and Protobuf must allow each number.
     *
     * @param names names of the members in errors, in the same order as the members
     * @param ofEnum whether the members are constants of an enum, for which every number from 0 is allowed
     */
    private void numbers(List<? extends Element> members, List<String> names, String where, boolean ofEnum) {
        Map<Integer, String> taken = new HashMap<>();
        for (int i = 0; i < members.size(); i++) {
            Element member = members.get(i);
            Field field = member.getAnnotation(Field.class);
            String name = where + "." + names.get(i);
            if (field == null) {
                if (members.stream().anyMatch(other -> other.getAnnotation(Field.class) != null)) {
                    refusal.accept(
                            member,
                            name + ": no @Field, while others of " + where + " have one (expected: all or none)");
                }
                continue;
            }
            int number = field.value();
            boolean fits = ofEnum ? number >= 0 : number >= 1 && number <= 536_870_911 && number / 1000 != 19;
            if (!fits) {
                refusal.accept(
                        member,
                        name + ": number " + number + " (expected: "
                                + (ofEnum ? "0 or more)" : "1 to 536870911, without 19000 to 19999)"));
            }
            String other = taken.putIfAbsent(number, names.get(i));
            if (other != null) {
                refusal.accept(member, name + ": number " + number + " is taken by " + other);
            }
        }
    }
}
