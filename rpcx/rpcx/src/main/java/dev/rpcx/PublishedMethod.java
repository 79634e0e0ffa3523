package dev.rpcx;

import dev.rpcx.schema.Field;
import dev.rpcx.schema.ParameterNumbers;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Parameter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * A method that is called from another process, and the name by which it is. Client, server and
 * {@link dev.rpcx.tool.SchemaTool} find them here, so that all three have the same methods under the same names.
 *
 * @param name from {@link dev.rpcx.Method#value}, or the method's own
 */
public record PublishedMethod(String name, Method method) {
    public PublishedMethod {
        Given.notNull(name, "name", "the name by which the method is called");
        Given.notNull(method, "method", "what is called");
    }

    /**
     * All of a type: the abstract methods of an interface; the methods of a class and its superclasses that are
     * annotated with {@link dev.rpcx.Method}, whatever their access. The order is the same in every process. A class
     * has each name once. An interface may have one method in several forms, such as one that waits and one that
     * gives a
     * future: their parameters are the same.
     *
     * @throws IllegalArgumentException two methods of a class have one name, or two of an interface that differ in
     *     their parameters; a name is not 1 to 255 bytes without NUL; a static method is annotated; or a class
     *     gives parameters other numbers than an interface that it implements
     */
    public static List<PublishedMethod> of(Class<?> type) {
        List<PublishedMethod> published = new ArrayList<>();
        Map<String, Method> owners = new HashMap<>();
        Given.notNull(type, "type", "an interface or a class");
        for (Method method : type.isInterface() ? ofInterface(type) : ofClass(type)) {
            dev.rpcx.Method marked = method.getAnnotation(dev.rpcx.Method.class);
            String name = Names.checked(marked == null || marked.value().isEmpty() ? method.getName() : marked.value());
            Method owner = owners.putIfAbsent(name, method);
            if (owner != null && !(type.isInterface() && takeTheSame(owner, method))) {
                throw new IllegalArgumentException(
                        type.getName() + ": " + name + " is published twice (expected: names that differ"
                                + (type.isInterface() ? ", or the same parameters by the same names)" : ")"));
            }
            published.add(new PublishedMethod(name, method));
        }
        return published;
    }

    private static List<Method> ofInterface(Class<?> type) {
        return Arrays.stream(type.getMethods())
                .filter(method -> Modifier.isAbstract(method.getModifiers()))
                .sorted(order())
                .toList();
    }

    private static List<Method> ofClass(Class<?> type) {
        List<Method> methods = new ArrayList<>();
        Set<List<Object>> overriding = new HashSet<>();
        for (Class<?> c = type; c != null && c != Object.class; c = c.getSuperclass()) {
            List<Method> marked = Arrays.stream(c.getDeclaredMethods())
                    .filter(method -> method.isAnnotationPresent(dev.rpcx.Method.class))
                    .sorted(order())
                    .toList();
            for (Method method : marked) {
                if (Modifier.isStatic(method.getModifiers())) {
                    throw new IllegalArgumentException(
                            method + ": @Method on a static method (expected: one of the object)");
                }
                if (!method.isBridge() && !overriding.contains(signature(method))) {
                    refuseOtherNumbers(type, method);
                    methods.add(method);
                }
            }
            // a subclass's method stands for the one that it overrides; of a generic one its bridge says so
            marked.stream()
                    .filter(method -> !method.isBridge() || isOfOwn(method, marked))
                    .forEach(method -> overriding.add(signature(method)));
        }
        return methods;
    }

    /** No method has the annotations of the one that it overrides, and the interface's are those of clients. */
    private static void refuseOtherNumbers(Class<?> type, Method method) {
        Set<Class<?>> interfaces = interfaces(type, new LinkedHashSet<>());
        for (Class<?> each : interfaces) {
            boolean isOfClient = interfaces.stream()
                    .anyMatch(other -> other.isAnnotationPresent(RPCXClient.class) && each.isAssignableFrom(other));
            for (Method declared : methods(each, isOfClient)) {
                boolean isNumbered = isOfClient
                        || Arrays.stream(declared.getParameters())
                                .anyMatch(parameter -> parameter.isAnnotationPresent(Field.class));
                if (isNumbered
                        && isImplementedBy(method, declared, type)
                        && !numbers(declared).equals(numbers(method))) {
                    throw new IllegalArgumentException(ParameterNumbers.differ(
                            type.getName() + "." + method.getName(),
                            numbers(method),
                            each.getName(),
                            numbers(declared)));
                }
            }
        }
    }

    /** What has nothing to do with calls may name classes that are not there. */
    private static Method[] methods(Class<?> type, boolean isOfClient) {
        try {
            return type.getDeclaredMethods();
        } catch (NoClassDefFoundError e) {
            if (isOfClient) {
                throw e;
            }
            return new Method[0];
        }
    }

    private static Set<Class<?>> interfaces(Class<?> type, Set<Class<?>> found) {
        for (Class<?> each : type.getInterfaces()) {
            if (found.add(each)) {
                interfaces(each, found);
            }
        }
        return type.getSuperclass() == null ? found : interfaces(type.getSuperclass(), found);
    }

    /** A generic interface's method has other types; of those that may be it there has to be one. */
    private static boolean isImplementedBy(Method method, Method declared, Class<?> type) {
        if (Modifier.isStatic(declared.getModifiers()) || !isLike(method, declared)) {
            return false;
        }
        List<Method> bridges = new ArrayList<>();
        List<Method> others = new ArrayList<>();
        for (Class<?> c = type; c != null; c = c.getSuperclass()) {
            for (Method each : c.getDeclaredMethods()) {
                if (isLike(each, declared)) {
                    (each.isBridge() ? bridges : others).add(each);
                }
            }
        }
        if (others.stream().anyMatch(each -> haveSameTypes(each, declared))) {
            return haveSameTypes(method, declared);
        }
        return bridges.stream().anyMatch(each -> haveSameTypes(each, declared))
                && others.stream().map(PublishedMethod::signature).distinct().count() == 1;
    }

    /** Whether the one may override the other: it has the same name, and takes nothing that the other does not. */
    private static boolean isLike(Method method, Method declared) {
        if (!method.getName().equals(declared.getName())
                || method.getParameterCount() != declared.getParameterCount()) {
            return false;
        }
        for (int i = 0; i < method.getParameterCount(); i++) {
            if (!declared.getParameterTypes()[i].isAssignableFrom(method.getParameterTypes()[i])) {
                return false;
            }
        }
        return true;
    }

    private static boolean haveSameTypes(Method one, Method other) {
        return Arrays.equals(one.getParameterTypes(), other.getParameterTypes());
    }

    /**
     * The same types under the same numbers and names: what changes places in one form would be seen by no lock, which
     * has the names of one.
     */
    private static boolean takeTheSame(Method one, Method other) {
        return Arrays.equals(one.getGenericParameterTypes(), other.getGenericParameterTypes())
                && numbers(one).equals(numbers(other))
                && haveTheSameNames(one, other);
    }

    private static List<Integer> numbers(Method method) {
        return ParameterNumbers.of(Arrays.asList(method.getParameters()), each -> each.getAnnotation(Field.class));
    }

    /** Of several; or one of the two was compiled without names. */
    private static boolean haveTheSameNames(Method one, Method other) {
        Parameter[] ofOne = one.getParameters();
        Parameter[] ofOther = other.getParameters();
        for (int i = 0; ofOne.length > 1 && i < ofOne.length; i++) {
            if (ofOne[i].isNamePresent()
                    && ofOther[i].isNamePresent()
                    && !ofOne[i].getName().equals(ofOther[i].getName())) {
                return false;
            }
        }
        return true;
    }

    /** The virtual machine gives methods in no order: numbers are to be the same in every process. */
    private static Comparator<Method> order() {
        return Comparator.comparing(Method::getName).thenComparing(Method::toString);
    }

    /**
     * Whether a bridge stands for a method of its own class, with other types. A public class has bridges to what it
     * inherits from one that is not public, too.
     */
    private static boolean isOfOwn(Method bridge, List<Method> marked) {
        return marked.stream()
                .anyMatch(method -> !method.isBridge()
                        && method.getName().equals(bridge.getName())
                        && method.getParameterCount() == bridge.getParameterCount());
    }

    /** Equal for a method and the one that it overrides. A private method overrides none. */
    private static List<Object> signature(Method method) {
        Object own = Modifier.isPrivate(method.getModifiers()) ? method : "";
        return List.of(own, method.getName(), List.of(method.getParameterTypes()));
    }
}
