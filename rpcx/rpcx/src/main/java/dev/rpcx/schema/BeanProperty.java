package dev.rpcx.schema;

import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A field of a class with a public getter and setter.
 *
 * @param annotated the field, or the getter if that has its number
 */
record BeanProperty(java.lang.reflect.Field field, AnnotatedElement annotated, Method getter, Method setter) {
    String name() {
        return field.getName();
    }

    /**
     * Those of the fields that one class declares, in their order. A subclass may have the accessors.
     *
     * @param declaring the class whose fields these are
     * @param type the class that is mapped: that one, or a subclass
     * @param names of the fields of subclasses, to which those of this class are added. A field that a subclass hides
     *     by one of the same name has no accessors of its own: they are those of the subclass's field
     * @param below what the fields of subclasses are
     * @throws SchemaException a field's value would be lost, as it has one of the two alone, or one of another type
     */
    static Map<String, BeanProperty> of(
            Class<?> declaring, Class<?> type, Set<String> names, Map<String, BeanProperty> below) {
        Map<String, BeanProperty> properties = new LinkedHashMap<>();
        for (java.lang.reflect.Field field : declaring.getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) || Modifier.isTransient(field.getModifiers())) {
                continue;
            }
            String name = field.getName();
            if (!names.add(name)) {
                BeanProperty hiding = below.get(name);
                if (hiding != null) {
                    properties.put(name, hiding);
                }
                continue;
            }
            boolean isBoolean = field.getType() == boolean.class;
            List<String> getters = Accessors.getters(name, isBoolean);
            List<String> setters = Accessors.setters(name, isBoolean);
            Method getter = getter(type, getters, field.getType());
            Method numbered = getter;
            if (getter == null) {
                // what a subclass narrows calls its own, which has the number
                getter = getter(declaring, getters, field.getType());
                numbered = getter == null ? null : method(type, getter.getName());
            }
            Method setter = Modifier.isFinal(field.getModifiers()) ? null : setter(type, setters, field.getType());
            if (getter != null && setter != null) {
                AnnotatedElement annotated =
                        numbered != null && numbered.isAnnotationPresent(Field.class) ? numbered : field;
                properties.put(name, new BeanProperty(field, annotated, getter, setter));
            } else if (getter != null || setter != null) {
                throw new SchemaException(declaring.getName() + "." + name + ": " + Accessors.alone(getter != null));
            } else {
                refuseOthers(type, name, getters, setters, declaring.getName());
            }
        }
        return properties;
    }

    /** A field with accessors of another type is meant to be sent. One whose name alone is that of a method is not. */
    private static void refuseOthers(
            Class<?> type, String field, List<String> getters, List<String> setters, String where) {
        refuse(type, field, getters, 0, where);
        refuse(type, field, setters, 1, where);
    }

    private static void refuse(Class<?> type, String field, List<String> names, int parameters, String where) {
        for (Method method : type.getMethods()) {
            String name = method.getName();
            boolean isNamed = names.contains(name)
                    && !name.equals(field)
                    && method.getParameterCount() == parameters
                    && (parameters > 0 || method.getReturnType() != void.class);
            if (isNamed && isAccessor(method)) {
                throw new SchemaException(where + "." + field + ": " + Accessors.ofOtherType(name));
            }
        }
    }

    private static @Nullable Method getter(Class<?> type, List<String> names, Class<?> result) {
        for (String name : names) {
            Method method = method(type, name);
            if (method != null && method.getReturnType() == result) {
                return method;
            }
        }
        return null;
    }

    private static @Nullable Method setter(Class<?> type, List<String> names, Class<?> parameter) {
        for (String name : names) {
            Method method = method(type, name, parameter);
            if (method != null) {
                return method;
            }
        }
        return null;
    }

    private static @Nullable Method method(Class<?> type, String name, Class<?>... parameters) {
        try {
            Method method = type.getMethod(name, parameters);
            return isAccessor(method) ? method : null;
        } catch (NoSuchMethodException e) {
            return null;
        }
    }

    private static boolean isAccessor(Method method) {
        return !Modifier.isStatic(method.getModifiers());
    }
}
