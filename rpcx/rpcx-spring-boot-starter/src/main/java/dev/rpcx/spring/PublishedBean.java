package dev.rpcx.spring;

import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.springframework.aop.support.AopUtils;
import org.springframework.core.annotation.MergedAnnotations;
import org.springframework.util.ClassUtils;

/**
 * Checks that a bean can be published. The bean may be a proxy: an object of a subclass, whose fields are empty, and
 * whose methods pass each call to the aspects and to the bean behind them. A method that the subclass does not override
 * would run on the empty object, without any aspect.
 */
final class PublishedBean {
    private PublishedBean() {}

    /**
     * Checks that calls of the bean's published methods go through the proxy in front of it, if there is one.
     *
     * @throws RPCXStartException if a call of a published method would bypass the proxy, or if the proxy does not have
     *     the method
     */
    static void check(String name, Object bean) {
        Class<?> service = AopUtils.getTargetClass(bean);
        if (AopUtils.isJdkDynamicProxy(bean)) {
            throw new RPCXStartException(
                    "Bean '" + name + "' of class " + service.getName()
                            + " is behind a proxy of its interfaces, which does not have the class's @Method methods.",
                    "Let Spring make a proxy of the class: spring.aop.proxy-target-class=true, which is the default, "
                            + "or proxyMode = ScopedProxyMode.TARGET_CLASS at its @Scope.",
                    null);
        }
        if (!AopUtils.isCglibProxy(bean)) {
            return;
        }
        List<Method> bypassing = published(service).stream()
                .filter(method -> !isOverridden(method, bean.getClass(), service))
                .toList();
        if (!bypassing.isEmpty()) {
            throw new RPCXStartException(
                    "Bean '" + name + "' of class " + service.getName()
                            + " is behind a proxy, since an aspect (such as that of @Transactional or @PreAuthorize)"
                            + " or a scope applies to it. The proxy cannot stand before these @Method methods: "
                            + bypassing.stream().map(PublishedBean::described).collect(Collectors.joining(", "))
                            + ". They would run without the aspect, and without the bean's fields.",
                    "Make the methods public and not final, or leave the bean without aspect and scope.",
                    null);
        }
    }

    private static List<Method> published(Class<?> service) {
        List<Method> published = new ArrayList<>();
        for (Class<?> c = service; c != null && c != Object.class; c = c.getSuperclass()) {
            for (Method method : c.getDeclaredMethods()) {
                if (!method.isBridge() && MergedAnnotations.from(method).isPresent(dev.rpcx.Method.class)) {
                    published.add(method);
                }
            }
        }
        return published;
    }

    /**
     * Returns whether the proxy's class overrides a method. It goes by the methods that the proxy's class has and not
     * by which methods may be overridden, since that depends on the class loader of the proxy's class as well.
     */
    private static boolean isOverridden(Method method, Class<?> proxy, Class<?> service) {
        for (Class<?> c = proxy; c != null && c != service; c = c.getSuperclass()) {
            for (Method own : c.getDeclaredMethods()) {
                if (own.getName().equals(method.getName())
                        && Arrays.equals(own.getParameterTypes(), method.getParameterTypes())) {
                    return !Modifier.isPrivate(method.getModifiers());
                }
            }
        }
        return false;
    }

    private static String described(Method method) {
        int modifiers = method.getModifiers();
        return method.getDeclaringClass().getSimpleName() + "." + method.getName() + " ("
                + (Modifier.isPrivate(modifiers)
                        ? "private"
                        : Modifier.isStatic(modifiers)
                                ? "static"
                                : Modifier.isFinal(modifiers) ? "final" : "not visible to the proxy's class")
                + ")";
    }

    /** Returns the names of the beans with their classes, for messages. */
    static String namesOf(Map<String, Object> beans) {
        return beans.entrySet().stream()
                .map(each -> "'" + each.getKey() + "' of class "
                        + ClassUtils.getUserClass(each.getValue()).getName())
                .collect(Collectors.joining(", "));
    }
}
