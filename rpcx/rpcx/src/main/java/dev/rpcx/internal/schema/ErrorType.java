package dev.rpcx.internal.schema;

import dev.rpcx.schema.SchemaException;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Parameter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * An exception whose state is sent, with the members by which the state is read and the exception is made. This class
 * also makes the texts of errors about such exceptions, which the annotation processor shares.
 *
 * @param constructor the only constructor of the exception; its parameters are the state
 * @param accessors for each parameter of the constructor, the public method that returns its value
 */
public record ErrorType(Constructor<?> constructor, List<Method> accessors) {
    public ErrorType {
        accessors = List.copyOf(accessors);
    }

    /**
     * Finds the members of an exception.
     *
     * @throws SchemaException if the exception is abstract or an inner class, if it does not have exactly one
     *     constructor, if a parameter has no accessor, or if the names of the parameters are not in the class file
     */
    public static ErrorType of(Class<?> type) {
        String name = type.getName();
        if (Modifier.isAbstract(type.getModifiers())) {
            throw new SchemaException(ofAbstract(name));
        }
        if (type.getEnclosingClass() != null && !Modifier.isStatic(type.getModifiers())) {
            throw new SchemaException(ofInner(name));
        }
        List<Constructor<?>> constructors = Arrays.stream(type.getDeclaredConstructors())
                .filter(each -> !each.isSynthetic())
                .toList();
        if (constructors.size() != 1) {
            throw new SchemaException(ofConstructors(name, constructors.size()));
        }
        List<Method> accessors = new ArrayList<>();
        for (Parameter parameter : constructors.get(0).getParameters()) {
            if (!parameter.isNamePresent()) {
                throw new SchemaException(Accessors.withoutNames(name));
            }
            Method accessor = accessor(type, parameter);
            if (accessor == null) {
                throw new SchemaException(withoutAccessor(name, parameter.getName()));
            }
            accessors.add(accessor);
        }
        return new ErrorType(constructors.get(0), accessors);
    }

    private static @Nullable Method accessor(Class<?> type, Parameter parameter) {
        for (String name : Accessors.getters(parameter.getName(), parameter.getType() == boolean.class)) {
            try {
                Method found = type.getMethod(name);
                if (!Modifier.isStatic(found.getModifiers()) && found.getReturnType() == parameter.getType()) {
                    return found;
                }
            } catch (NoSuchMethodException e) {
                // the accessor may have another of the names
            }
        }
        return null;
    }

    /** Returns the text of the error for an abstract class. */
    public static String ofAbstract(String type) {
        return type + ": @RPCXError on an abstract class (expected: each class of which there are objects)";
    }

    /** Returns the text of the error for an inner class, whose constructor takes the object around it. */
    public static String ofInner(String type) {
        return type + ": @RPCXError on an inner class (expected: a static one, or one of its own)";
    }

    /** Returns the text of the error for a class that does not have exactly one constructor. */
    public static String ofConstructors(String type, int constructors) {
        return type + ": @RPCXError on a class with " + constructors
                + " constructors (expected: one, whose parameters are what is sent)";
    }

    /** Returns the text of the error for a parameter of the constructor that no method returns. */
    public static String withoutAccessor(String type, String parameter) {
        return type + ": no method returns what its constructor takes as " + parameter + " (expected: a public "
                + parameter + "() or get" + Schema.capital(parameter) + "() with the type of the parameter)";
    }

    /** Returns the text of the error for a class that is no exception. */
    public static String ofOther(String type) {
        return type + ": @RPCXError on a class that is no exception (expected: one that a method can throw)";
    }

    /** Returns the text of the error for a checked exception that a client's method declares and that never arrives. */
    public static String unmarked(String method, String type) {
        return method + ": throws " + type + ", which never comes from a server (expected: @RPCXError on it, or an"
                + " unchecked exception)";
    }

    /** Returns the text of the error for two exceptions of one method that have the same name on the wire. */
    public static String namesakes(String method, String one, String other, String name) {
        return method + ": throws " + one + " and " + other + ", which are both " + name
                + " on the wire (expected: another name by @RPCXError)";
    }

    /**
     * Returns whether a class belongs to the JDK. A client's method may declare checked exceptions of the JDK, because
     * an interceptor may throw them.
     */
    public static boolean isOfJdk(String type) {
        return type.startsWith("java.") || type.startsWith("javax.") || type.startsWith("jdk.");
    }
}
