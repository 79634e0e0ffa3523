package dev.rpcx.internal.call;

import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXError;
import dev.rpcx.internal.Given;
import dev.rpcx.internal.schema.ErrorType;
import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.ParameterNumbers;
import dev.rpcx.internal.schema.ProtoFile;
import dev.rpcx.internal.schema.Schema;
import dev.rpcx.schema.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Parameter;
import java.lang.reflect.Type;
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
 * A method that other processes can call, with the name by which they call it. Client, server and
 * {@link dev.rpcx.tool.SchemaTool} all use this class to find methods, so they agree on the names.
 *
 * @param name value of the {@link dev.rpcx.Method} annotation; without an annotation or a value, the name of the Java
 *     method
 */
public record PublishedMethod(String name, Method method) {
    public PublishedMethod {
        Given.notNull(name, "name", "the name by which the method is called");
        Given.notNull(method, "method", "what is called");
    }

    /**
     * Returns the exceptions with {@link RPCXError} that the method declares, in the order of the declaration.
     *
     * @throws dev.rpcx.schema.SchemaException if the state of such an exception cannot be sent
     */
    public List<ErrorType> errors() {
        return Arrays.stream(method.getExceptionTypes())
                .filter(type -> type.isAnnotationPresent(RPCXError.class))
                .map(ErrorType::of)
                .toList();
    }

    /**
     * Returns the method as a {@code .proto} has it. A {@code .proto} has no separate message that opens a stream. The
     * call begins with the first item, so the type of the request is the type of an item.
     *
     * @throws dev.rpcx.schema.SchemaException if the method cannot be mapped to Protobuf
     */
    public ProtoFile.Rpc rpc(Schema schema) {
        Type items = Streams.itemsTaken(method);
        MessageType request = items == null ? schema.parameters(method) : schema.value(items, method);
        List<MessageType> errors = errors().stream()
                .map(error -> schema.error(error.constructor()))
                .toList();
        return new ProtoFile.Rpc(
                name, request, schema.result(method), items != null, Streams.returnsStream(method), errors);
    }

    /**
     * Returns all methods of a type that other processes can call, in the same order in every process. For an
     * interface, these are the abstract methods. For a class, these are the methods annotated with
     * {@link dev.rpcx.Method}, including inherited and private ones. An interface can declare a method in several forms
     * with the same parameters, such as one that blocks and one that returns a future.
     *
     * @throws IllegalArgumentException in these cases:
     *     <ul>
     *       <li>Two methods of a class have the same name.
     *       <li>Two methods of an interface have the same name and different parameters.
     *       <li>A name does not have 1 to 255 bytes, or contains NUL.
     *       <li>A static method of a class is annotated.
     *       <li>The parameters of a method have other numbers in a class than in an interface that the class
     *           implements: see {@link #refuseOtherNumbers}.
     *     </ul>
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
            // A method of a superclass is left out if an annotated method of a subclass overrides it, that is, has the
            // same signature. If the overridden method is generic, the two methods can have different parameter types.
            // In that case, the compiler adds a bridge method to the subclass, with the parameter types of the
            // overridden method. For this reason, the signatures of bridge methods are remembered too.
            marked.stream()
                    .filter(method -> !method.isBridge() || isOfOwn(method, marked))
                    .forEach(method -> overriding.add(signature(method)));
        }
        return methods;
    }

    /**
     * Throws an exception if the parameters of {@code method} have other numbers in the class {@code type} than in an
     * interface that the class implements. Clients use the numbers of the interface, and the class does not inherit the
     * annotations of the interface. The numbers are compared in two cases:
     *
     * <ul>
     *   <li>A parameter of the interface's method has a {@link Field} annotation.
     *   <li>Clients can use the interface: {@link RPCXClient} is on the interface, or on a subinterface that the class
     *       also implements.
     * </ul>
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
     * Returns the methods that the interface {@code type} declares. If a class named in these methods is missing, the
     * virtual machine throws a {@code NoClassDefFoundError}. For an interface of a client, this method throws the error
     * too. For any other interface, the result is empty.
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
     * Returns whether {@code method} is the method of the class {@code type} that implements {@code declared}, a method
     * of an interface. If {@code declared} is generic, the two methods can have different parameter types. If the types
     * differ, the result is true only if two conditions hold in {@code type} and its superclasses:
     *
     * <ul>
     *   <li>There is a bridge method with the parameter types of {@code declared}.
     *   <li>The bridge method can call only {@code method}: no method with other parameter types looks like an override
     *       of {@code declared}.
     * </ul>
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
     * Returns whether {@code method} looks like an override of {@code declared}. Both methods must have the same name
     * and the same number of parameters. Each parameter of {@code method} must have the type of the parameter of
     * {@code declared}, or a subtype.
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
     * Returns whether the parameters of two methods have the same types, numbers and names. Both methods belong to the
     * same interface and are published by the same name. Names are compared because the schema's lock file contains the
     * parameters of only one of the two methods. The lock file would not show that two parameters of the other method
     * have changed places.
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
     * Returns whether the parameters of both methods have the same names. The name of a single parameter does not
     * matter. A method that was compiled without parameter names matches any other method.
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
     * Returns an order of methods that is the same in every process. The order is needed because the virtual machine
     * lists methods in no fixed order.
     */
    private static Comparator<Method> order() {
        return Comparator.comparing(Method::getName).thenComparing(Method::toString);
    }

    /**
     * Returns whether {@code bridge}, a bridge method that the compiler has generated, probably calls an annotated
     * method of its own class. The result is true if an annotated method has the same name and number of parameters.
     * Otherwise, {@code bridge} calls an inherited method: the compiler adds such bridge methods to a public class
     * whose superclass is not public.
     */
    private static boolean isOfOwn(Method bridge, List<Method> marked) {
        return marked.stream()
                .anyMatch(method -> !method.isBridge()
                        && method.getName().equals(bridge.getName())
                        && method.getParameterCount() == bridge.getParameterCount());
    }

    /**
     * Returns the key by which overrides are found: an override has the same key as the overridden method. There is one
     * exception: if the overridden method is generic, the override can have other parameter types, for example
     * {@code String} in place of {@code T}, and so another key. The key of a private method is unique, because a
     * private method overrides no other method.
     */
    private static List<Object> signature(Method method) {
        Object own = Modifier.isPrivate(method.getModifiers()) ? method : "";
        return List.of(own, method.getName(), List.of(method.getParameterTypes()));
    }
}
