package dev.rpcx.internal.schema;

import dev.rpcx.schema.Field;
import dev.rpcx.schema.SchemaException;
import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Field of a class, together with the public getter and the public setter of the field.
 *
 * @param annotated element whose {@code @Field} is used: the getter if the getter has a {@code @Field}, otherwise the
 *     field, which may have none. If a subclass overrides the getter with a narrower type, the override takes the place
 *     of the getter here
 */
record BeanProperty(java.lang.reflect.Field field, AnnotatedElement annotated, Method getter, Method setter) {
    String name() {
        return field.getName();
    }

    /**
     * Returns the properties of the fields that one class declares, by field name and in the order of declaration. A
     * field that has neither a getter nor a setter has no property. Static and transient fields are left out. The
     * getter and the setter can be declared in a subclass.
     *
     * <p>If {@code declaring} and a subclass have fields with the same name, the getter and the setter of this name
     * belong to the field of the subclass. The property of that field, if it has one, is then returned in place of the
     * field of {@code declaring}.
     *
     * @param declaring class that declares the fields
     * @param type class that is mapped: {@code declaring} or one of its subclasses
     * @param names names of the fields that subclasses of {@code declaring} declare; this method adds the names of the
     *     fields of {@code declaring}
     * @param below properties of the fields that subclasses of {@code declaring} declare, by field name
     * @throws SchemaException if the value of a field would be lost: the field has only a getter, only a setter, or
     *     only accessors of another type, or the field is final and has a setter
     */
    static Map<String, BeanProperty> of(
            Class<?> declaring, Class<?> type, Set<String> names, Map<String, BeanProperty> below) {
        Map<String, BeanProperty> properties = new LinkedHashMap<>();
        for (java.lang.reflect.Field field : declaring.getDeclaredFields()) {
            if (isLeftOut(field)) {
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
            Method getter = getter(type, field);
            Method numbered = getter;
            if (getter == null) {
                // A subclass can override the getter with a narrower type. A call of the declaring class's getter then
                // runs this override, as with every overridden method. So the @Field of the override is used.
                getter = getter(declaring, field);
                numbered = getter == null ? null : method(type, getter.getName());
            }
            Method setter = setter(type, field);
            if (getter == null) {
                refuseWithoutGetter(type, declaring, field);
            } else if (setter != null && Modifier.isFinal(field.getModifiers())) {
                throw new SchemaException(declaring.getName() + "." + name + ": " + Accessors.ofFinalField());
            } else if (setter == null) {
                throw new SchemaException(declaring.getName() + "." + name + ": " + Accessors.alone(true));
            } else {
                AnnotatedElement annotated =
                        numbered != null && numbered.isAnnotationPresent(Field.class) ? numbered : field;
                properties.put(name, new BeanProperty(field, annotated, getter, setter));
            }
        }
        return properties;
    }

    /** Returns whether a field is never a component, since it is static or transient. */
    static boolean isLeftOut(java.lang.reflect.Field field) {
        return Modifier.isStatic(field.getModifiers()) || Modifier.isTransient(field.getModifiers());
    }

    /**
     * Throws an exception if the value of a field without a getter would be lost, since the field has a setter, or
     * accessors of another type. A method of the field's own name is no setter of a final field.
     *
     * @param type class that is mapped
     * @param declaring class that declares the field: {@code type} or one of its superclasses
     */
    static void refuseWithoutGetter(Class<?> type, Class<?> declaring, java.lang.reflect.Field field) {
        String where = declaring.getName() + "." + field.getName() + ": ";
        Method setter = setter(type, field);
        boolean isFinal = Modifier.isFinal(field.getModifiers());
        if (setter == null || isFinal && setter.getName().equals(field.getName())) {
            refuseOtherTypes(type, field, declaring.getName());
        } else {
            throw new SchemaException(where + (isFinal ? Accessors.ofFinalField() : Accessors.alone(false)));
        }
    }

    /**
     * Throws a {@link SchemaException} if a method has the name of a getter or setter of the field, but another type
     * than the field. Called only if the field has no getter and no setter of its own type. Such a field would not be
     * sent, although the user probably wants it to be sent. A method with the field's own name is ignored.
     */
    private static void refuseOtherTypes(Class<?> type, java.lang.reflect.Field field, String where) {
        boolean isBoolean = field.getType() == boolean.class;
        refuse(type, field.getName(), Accessors.getters(field.getName(), isBoolean), 0, where);
        refuse(type, field.getName(), Accessors.setters(field.getName(), isBoolean), 1, where);
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

    /** Returns the public method of a class that has the name of a getter of the field, and the type of the field. */
    static @Nullable Method getter(Class<?> type, java.lang.reflect.Field field) {
        for (String name : Accessors.getters(field.getName(), field.getType() == boolean.class)) {
            Method method = method(type, name);
            if (method != null && method.getReturnType() == field.getType()) {
                return method;
            }
        }
        return null;
    }

    /** Returns the public method of a class that has the name of a setter of the field, and takes its type. */
    static @Nullable Method setter(Class<?> type, java.lang.reflect.Field field) {
        for (String name : Accessors.setters(field.getName(), field.getType() == boolean.class)) {
            Method method = method(type, name, field.getType());
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
