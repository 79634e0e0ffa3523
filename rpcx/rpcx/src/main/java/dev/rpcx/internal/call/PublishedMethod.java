package dev.rpcx.internal.call;

import dev.rpcx.RPCXClient;
import dev.rpcx.internal.Given;
import dev.rpcx.internal.schema.ParameterNumbers;
import dev.rpcx.schema.Field;
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
 * Method that can be called from another process, and the name by which it is called. Client, server and
 * {@link dev.rpcx.tool.SchemaTool} all find methods here, so they agree on the names.
 *
 * @param name value of {@link dev.rpcx.Method#value}; without one, the name of the Java method
 */
public record PublishedMethod(String name, Method method) {
    public PublishedMethod {
        Given.notNull(name, "name", "the name by which the method is called");
        Given.notNull(method, "method", "what is called");
    }

    /**
     * Returns all published methods of a type, in the same order in every process. For an interface, these are its
     * abstract methods; for a class, its own and inherited methods annotated with {@link dev.rpcx.Method}, whatever
     * their access. An interface may have several forms of a method with the same parameters, such as one that blocks
     * and one that returns a future.
     *
     * @throws IllegalArgumentException if two methods of a class have the same name; if two methods of an interface
     *     have the same name and different parameters; if a name does not have 1 to 255 bytes, or contains NUL; if a
     *     static method is annotated; or if a class gives the parameters of a method other numbers than an interface
     *     that it implements
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
            // A method of a subclass replaces the one that it overrides, which has the same signature. If the
            // overridden method is generic, a bridge in the subclass has its signature. So the signatures of both are
            // remembered.
            marked.stream()
                    .filter(method -> !method.isBridge() || isOfOwn(method, marked))
                    .forEach(method -> overriding.add(signature(method)));
        }
        return methods;
    }

    /**
     * Throws if the parameters of the method have other numbers than in an interface that its class implements.
     * Annotations are not inherited, and clients use those of the interface.
     */
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

    /**
     * Returns the methods that an interface declares. If a class that they name is missing, throws for an interface of
     * a client, and returns no methods for any other.
     */
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

    /**
     * Returns whether {@code method} implements {@code declared} in {@code type}. The types differ if {@code declared}
     * is generic: then {@code type} needs a bridge with the types of {@code declared}, and exactly one method for this
     * bridge.
     */
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

    /**
     * Returns whether {@code method} may override {@code declared}: same name, same number of parameters, and each
     * parameter of the declared type or a subtype.
     */
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
     * Returns whether both methods have parameters of the same types, numbers and names. Names matter because the
     * schema's lock file has those of only one form: it would not show that two parameters of the other form have
     * changed places.
     */
    private static boolean takeTheSame(Method one, Method other) {
        return Arrays.equals(one.getGenericParameterTypes(), other.getGenericParameterTypes())
                && numbers(one).equals(numbers(other))
                && haveTheSameNames(one, other);
    }

    private static List<Integer> numbers(Method method) {
        return ParameterNumbers.of(Arrays.asList(method.getParameters()), each -> each.getAnnotation(Field.class));
    }

    /**
     * Returns whether the parameters of both methods have the same names. A single parameter may have any name, and a
     * method that was compiled without names matches any other.
     */
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

    /**
     * Returns an order of methods that is the same in every process. The virtual machine lists methods in no fixed
     * order.
     */
    private static Comparator<Method> order() {
        return Comparator.comparing(Method::getName).thenComparing(Method::toString);
    }

    /**
     * Returns whether a bridge belongs to an annotated method of its own class. A public class also has bridges to
     * methods that it inherits from a class that is not public.
     */
    private static boolean isOfOwn(Method bridge, List<Method> marked) {
        return marked.stream()
                .anyMatch(method -> !method.isBridge()
                        && method.getName().equals(bridge.getName())
                        && method.getParameterCount() == bridge.getParameterCount());
    }

    /**
     * Returns a key that is equal for a method and the method that it overrides. A private method overrides none, so
     * its key is unique.
     */
    private static List<Object> signature(Method method) {
        Object own = Modifier.isPrivate(method.getModifiers()) ? method : "";
        return List.of(own, method.getName(), List.of(method.getParameterTypes()));
    }
}
