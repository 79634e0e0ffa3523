package dev.rpcx.schema;

import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** A field of a class with a public getter and setter. */
record BeanProperty(String name, AnnotatedElement annotated, Method getter, Method setter) {
    /** Those that this class itself declares, in the order of its fields. */
    static Map<String, BeanProperty> of(Class<?> type) {
        Map<String, BeanProperty> properties = new LinkedHashMap<>();
        for (java.lang.reflect.Field field : type.getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) || Modifier.isTransient(field.getModifiers())) {
                continue;
            }
            String capital = Schema.capital(field.getName());
            Method getter = method(type, "get" + capital, field.getType());
            if (getter == null && field.getType() == boolean.class) {
                getter = method(type, "is" + capital, field.getType());
            }
            if (getter == null) {
                getter = method(type, field.getName(), field.getType());
            }
            Method setter = method(type, "set" + capital, null, field.getType());
            if (setter == null) {
                setter = method(type, field.getName(), null, field.getType());
            }
            if (getter != null && setter != null) {
                AnnotatedElement annotated = getter.isAnnotationPresent(Field.class) ? getter : field;
                properties.put(field.getName(), new BeanProperty(field.getName(), annotated, getter, setter));
            }
        }
        return properties;
    }

    private static @Nullable Method method(
            Class<?> type, String name, @Nullable Class<?> result, Class<?>... parameters) {
        try {
            Method method = type.getMethod(name, parameters);
            boolean fits = result == null || method.getReturnType() == result;
            return fits && !Modifier.isStatic(method.getModifiers()) ? method : null;
        } catch (NoSuchMethodException e) {
            return null;
        }
    }
}
